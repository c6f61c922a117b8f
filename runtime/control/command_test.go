package control

import (
	"fmt"
	"reflect"
	"testing"
)

// Whatever carries an epoch is a command, but for what announces one and what
// workers and masters answer. Fails if a new command is not made one: workers
// would ignore it.
func TestCommands(t *testing.T) {
	others := map[string]bool{"Welcome": true, "Leading": true, "JobEnded": true, "Inventory": true, "Leftover": true}
	for _, k := range kinds {
		v := reflect.New(reflect.TypeOf(k)).Elem()
		f := v.FieldByName("Epoch")
		_, command := k.(Command)
		if want := f.IsValid() && !others[v.Type().Name()]; command != want {
			t.Errorf("%T is a command: %v", k, command)
		}
		if command {
			f.SetInt(7)
			if got := fmt.Sprint(v.Interface().(Command).Leadership()); got != "7" {
				t.Errorf("%T: leadership %s, not 7", k, got)
			}
		}
	}
}
