package page

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"html"
	"io"
	"regexp"
	"strings"
	"testing"
)

// unpack takes a file out of a page, as a reader who clicks on it would.
func unpack(t *testing.T, page, name string) []byte {
	t.Helper()
	m := regexp.MustCompile(`href="data:[^"]*?;base64,([^"]*)" download="` + regexp.QuoteMeta(name) + `"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page has no download %s", name)
	}
	b, err := base64.StdEncoding.DecodeString(html.UnescapeString(m[1]))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if !strings.HasSuffix(name, ".gz") {
		return b
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	b, err = io.ReadAll(z)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b
}
