package joblog

import (
	"errors"
	"strings"
	"testing"
)

// Jobs of one name are told apart, and the error says which of both it was.
//
// Fails if Identity leaves out the id, or if ForeignError does not look behind the
// name.
func TestForeignErrorSaysWhatIsForeign(t *testing.T) {
	d := newMemory()
	shut(t, must(OpenHardened(d, Config{Job: Identity("words.v2", "AAA"), Epoch: 1}))(t))
	for want, words := range map[string]string{
		Identity("words.v2", "BBB"): `job log log.1 belongs to another submission of job "words.v2" (AAA, not BBB)`,
		Identity("words", "AAA"):    `job log log.1 belongs to job "words.v2.AAA", not to "words.AAA"`,
		"words":                     `not to "words"`,
	} {
		_, err := OpenHardened(d, Config{Job: want, Epoch: 2})
		var foreign *ForeignError
		if !errors.As(err, &foreign) || !strings.HasSuffix(err.Error(), words) {
			t.Errorf("%s: %v", want, err)
		}
	}
	shut(t, must(OpenHardened(d, Config{Job: Identity("words.v2", "AAA"), Epoch: 2}))(t))
}
