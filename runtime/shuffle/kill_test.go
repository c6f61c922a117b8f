package shuffle

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"benchrun/runtime/exchange"
)

// childDir makes the test's executable a worker that writes into this folder.
const childDir = "SHUFFLE_TEST_WRITE_INTO"

// writeUntilKilled writes partitions and prints the number and checksum of each that
// is finished.
func writeUntilKilled(dir string) {
	s, _, err := Open(small(dir))
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		f := killOutput(i).make(panicking{}, s, partitionOf("job", i), 2<<10, Codec(i%3))
		fmt.Println(i, f.Checksum)
	}
}

func killOutput(i int) *output {
	return randomOutput(rand.New(rand.NewPCG(uint64(i), 3)), 3, 60, 200)
}

// A worker process is killed while it writes: what it had finished is there in
// the next one, exact, and nothing else is.
//
// Fails if Finish returns before the blockWriter has flushed.
func TestKilledWorker(t *testing.T) {
	dir := t.TempDir()
	next := 0
	for round := range 4 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		sums := map[PartitionID]uint32{}
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var i int
			var sum uint32
			if _, err := fmt.Sscan(lines.Text(), &i, &sum); err != nil {
				t.Fatalf("%q: %v", lines.Text(), err)
			}
			sums[partitionOf("job", i)] = sum
			if next = i; i == 5*(round+1) {
				cmd.Process.Kill() // lines may still follow
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the worker ended by itself")
		}
		s := open(t, small(dir))
		list := s.Inventory("job")
		if n := len(list) - len(sums); n < 0 || n > 1 { // one may be finished and not printed
			t.Fatalf("%d partitions were finished, %d are there", len(sums), len(list))
		}
		for _, f := range list {
			if sum, ok := sums[f.ID]; ok && sum != f.Checksum || !ok && f.ID.Index != next+1 {
				t.Errorf("%s: checksum %08x, want %08x", f.ID, f.Checksum, sum)
			}
			killOutput(f.ID.Index).expect(t, s, f.ID, Range{0, 2})
		}
		if _, err := s.Reader(partitionOf("job", next+2), Range{}); !errors.Is(err, exchange.ErrPartitionLost) {
			t.Errorf("what was not finished: %v", err)
		}
		if err := s.ReleaseJob("job"); err != nil {
			t.Error(err)
		}
		checkEmpty(t, s)
		shut(t, s)
	}
}
