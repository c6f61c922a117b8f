package embedded_test

import (
	"testing"

	"benchrun/harness/target/embedded"
	"benchrun/harness/target/targettest"
)

func TestConformance(t *testing.T) { targettest.Conformance(t, embedded.New()) }
