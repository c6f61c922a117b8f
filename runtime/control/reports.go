package control

import (
	"bytes"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"benchrun/runtime/failpoint"
	"benchrun/runtime/joblog"
	"benchrun/runtime/storage"
)

// ReportsOf is the folder of what the operators of a batch job report at the end,
// below that of its output: one file an attempt, so that neither the loss of a worker
// nor of a master loses a proof. Under a name that begins with a dot they belong to
// the attempt alone; the master takes the dot away for the attempt that counts. What
// another submission has left, also of a job of the same name, is in a folder of its
// own: run is the id that no other has.
func ReportsOf(output, run string) string { return filepath.Join(output, "reports", run) }

// Fault points around what changes the folder of reports; the subject is the
// name of the file, without the dot.
var (
	writingReports  = failpoint.NewPassage("reports/write", "reports/written")
	renamingReports = failpoint.NewPassage("reports/rename", "reports/renamed")
	removingReports = failpoint.NewPassage("reports/remove", "reports/removed")
	syncingReports  = failpoint.NewPassage("reports/sync", "reports/synced")
)

// MissingReportsError: an attempt that has finished has no reports any more.
type MissingReportsError struct {
	Attempt joblog.AttemptID
	Folder  string
}

func (e *MissingReportsError) Error() string {
	return fmt.Sprintf("the reports of %s are not in %s any more", e.Attempt, e.Folder)
}

func reportName(a joblog.AttemptID) string {
	return fmt.Sprintf("%x~%d~e%da%d", a.Vertex, a.Subtask, a.Epoch, a.Attempt)
}

// reporter undoes reportName, also for a file that is hidden or was never
// written to its end.
func reporter(name string) (a joblog.AttemptID, ok bool) {
	name, _, _ = strings.Cut(strings.TrimLeft(name, "."), "-")
	vertex, rest, _ := strings.Cut(name, "~")
	v, err := hex.DecodeString(vertex)
	if err != nil {
		return a, false
	}
	a.Vertex = string(v)
	_, err = fmt.Sscanf(rest, "%d~e%da%d", &a.Subtask, &a.Epoch, &a.Attempt)
	return a, err == nil && reportName(a) == name
}

// WriteReports makes those of an attempt that has finished durable; dir is ReportsOf,
// here and below.
func WriteReports(dir string, a joblog.AttemptID, reports []Report) error {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(reports)
	if err == nil {
		err = storage.MakeFolders(dir)
	}
	if err == nil {
		err = writingReports.Pass(reportName(a), func() error {
			return storage.WriteFile(filepath.Join(dir, "."+reportName(a)), b.Bytes())
		})
	}
	if err != nil {
		return fmt.Errorf("reports of %s: %w", a, err)
	}
	return nil
}

// FindReports looks whether the reports of an attempt are there; if not, the
// error is a *MissingReportsError.
func FindReports(dir string, a joblog.AttemptID) error {
	for _, name := range []string{"." + reportName(a), reportName(a)} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("reports of %s: %w", a, err)
		}
	}
	return &MissingReportsError{a, dir}
}

// CommitReports makes the reports of an attempt count, and returns them. It may
// be repeated, and is durable after SyncReports.
func CommitReports(dir string, a joblog.AttemptID) ([]Report, error) {
	if err := FindReports(dir, a); err != nil {
		return nil, err
	}
	final := filepath.Join(dir, reportName(a))
	err := renamingReports.Pass(reportName(a), func() error {
		err := os.Rename(filepath.Join(dir, "."+reportName(a)), final)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has been done
		}
		return err
	})
	var reports []Report
	if err == nil {
		reports, err = readReports(final)
	}
	if errors.Is(err, fs.ErrNotExist) { // they were taken back meanwhile
		return nil, &MissingReportsError{a, dir}
	}
	if err != nil {
		return nil, fmt.Errorf("reports of %s: %w", a, err)
	}
	return reports, nil
}

// SyncReports makes durable which reports count.
func SyncReports(dir string) error {
	err := syncingReports.Pass("", func() error { return storage.SyncFolder(dir) })
	if err != nil {
		return fmt.Errorf("reports: %w", err)
	}
	return nil
}

func readReports(name string) (reports []Report, err error) {
	b, err := os.ReadFile(name)
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(b)).Decode(&reports)
	}
	return reports, err
}

// reportFiles lists the folder. One that is not there is empty.
func reportFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reports: %w", err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// ReadReports returns all that count.
func ReadReports(dir string) ([]Report, error) {
	names, err := reportFiles(dir)
	if err != nil {
		return nil, err
	}
	var all []Report
	for _, name := range names {
		if strings.HasPrefix(name, ".") {
			continue
		}
		reports, err := readReports(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("reports in %s: %w", name, err)
		}
		all = append(all, reports...)
	}
	return all, nil
}

// DropReports removes those that do not count, of this epoch and earlier ones.
func DropReports(dir string, epoch uint64) error {
	names, err := reportFiles(dir)
	errs := []error{err}
	for _, name := range names {
		if a, ok := reporter(name); ok && strings.HasPrefix(name, ".") && a.Epoch <= epoch {
			errs = append(errs, removeReports(dir, name))
		}
	}
	return errors.Join(errs...)
}

// WithdrawReports takes back, durably, the reports of attempts of epochs before
// this one, but of those to keep; also those that never counted, so that a master
// that should not lead any more finds nothing to commit. undo has to take back
// what they speak of before they go: a crash in between is repeated from the
// beginning.
func WithdrawReports(dir string, epoch uint64, keep map[joblog.AttemptID]bool, undo func([]Report) error) error {
	names, err := reportFiles(dir)
	if err != nil {
		return err
	}
	var void []string
	var reports []Report
	for _, name := range names {
		a, ok := reporter(name)
		if !ok || a.Epoch >= epoch || keep[a] {
			continue
		}
		void = append(void, reportName(a))
		if strings.TrimLeft(name, ".") != reportName(a) {
			void = append(void, name) // it was never written to its end
			continue
		}
		all, err := readReports(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) { // it was made to count meanwhile
			all, err = readReports(filepath.Join(dir, reportName(a)))
		}
		if err != nil {
			return fmt.Errorf("reports of %s, which are to be taken back: %w", a, err)
		}
		reports = append(reports, all...)
	}
	if len(void) == 0 {
		return nil
	}
	if err := undo(reports); err != nil {
		return err
	}
	for _, name := range void {
		// Hidden first: a rename at the same time is caught under the other name.
		if err := errors.Join(removeReports(dir, "."+name), removeReports(dir, name)); err != nil {
			return err
		}
	}
	return SyncReports(dir)
}

// removeReports removes a file of the folder; one that is not there is fine.
func removeReports(dir, name string) error {
	err := removingReports.Pass(strings.TrimLeft(name, "."), func() error {
		err := os.Remove(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("remove reports: %w", err)
	}
	return nil
}
