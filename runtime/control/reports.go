package control

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"benchrun/runtime/joblog"
)

// What operators of a batch job report at the end lies in files, one an
// attempt, so that neither the loss of a worker nor of a master loses a proof.
// Under a name that begins with a dot they belong to the attempt alone; the
// master takes the dot away for the attempt that counts.
const reportsDir = "reports"

func reportName(a joblog.AttemptID) string {
	return fmt.Sprintf("%x~%d~e%da%d", a.Vertex, a.Subtask, a.Epoch, a.Attempt)
}

// WriteReports writes those of an attempt that has finished.
func WriteReports(dir string, a joblog.AttemptID, reports []Report) error {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(reports)
	dir = filepath.Join(dir, reportsDir)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "."+reportName(a)), b.Bytes(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("reports of %s: %w", a, err)
	}
	return nil
}

// CommitReports makes the reports of an attempt count, and returns them. It may
// be repeated.
func CommitReports(dir string, a joblog.AttemptID) ([]Report, error) {
	dir = filepath.Join(dir, reportsDir)
	final := filepath.Join(dir, reportName(a))
	err := os.Rename(filepath.Join(dir, "."+reportName(a)), final)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // it has been done
	}
	var reports []Report
	if err == nil {
		reports, err = readReports(final)
	}
	if err != nil {
		return nil, fmt.Errorf("reports of %s: %w", a, err)
	}
	return reports, nil
}

func readReports(name string) (reports []Report, err error) {
	b, err := os.ReadFile(name)
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(b)).Decode(&reports)
	}
	return reports, err
}

// ReadReports returns all that count.
func ReadReports(dir string) ([]Report, error) {
	entries, err := os.ReadDir(filepath.Join(dir, reportsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reports: %w", err)
	}
	var all []Report
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		reports, err := readReports(filepath.Join(dir, reportsDir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("reports in %s: %w", e.Name(), err)
		}
		all = append(all, reports...)
	}
	return all, nil
}

// DropReports removes those that do not count.
func DropReports(dir string) error {
	entries, err := os.ReadDir(filepath.Join(dir, reportsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			errs = append(errs, os.Remove(filepath.Join(dir, reportsDir, e.Name())))
		}
	}
	return errors.Join(append(errs, err)...)
}
