package batch

import (
	"benchrun/runtime/joblog"
)

// maxPairs bounds the subpartitions that one task reads: beyond that its
// connections cost more than its data.
const maxPairs = 32768

// span is a range of subpartitions, inclusive.
type span struct{ first, last int }

// cut sweeps over the bytes of subpartitions and begins a new range where the
// sum would pass the limit, or the range would get too long.
func cut(bytes []int64, limit int64, length int) []span {
	var out []span
	var sum int64
	from := 0
	for i, b := range bytes {
		if i > from && (sum+b > limit || i-from >= length) {
			out = append(out, span{from, i - 1})
			from, sum = i, 0
		}
		sum += b
	}
	return append(out, span{from, len(bytes) - 1})
}

// balanced gives each task about as many bytes as it should have. Where that
// leads outside [low, high] the limit is bisected to the nearest legal number;
// if there is none the subpartitions are spread evenly.
func balanced(bytes []int64, volume int64, low, high, producers int) []span {
	high = min(high, len(bytes))
	low = min(low, high)
	length := max(1, maxPairs/max(1, producers))
	if r := cut(bytes, volume, length); len(r) >= low && len(r) <= high {
		return r
	}
	var total int64
	for _, b := range bytes {
		total += b
	}
	// The number of ranges falls with the limit. Find the lowest limit with at
	// most high ranges; for fewer than low the one before it is tried as well.
	lowest := func(enough func(int) bool) int64 {
		from, to := int64(0), total+1
		for from < to {
			mid := from + (to-from)/2
			if enough(len(cut(bytes, mid, length))) {
				to = mid
			} else {
				from = mid + 1
			}
		}
		return from
	}
	var r []span
	if len(cut(bytes, volume, length)) > high {
		r = cut(bytes, lowest(func(n int) bool { return n <= high }), length)
	} else {
		r = cut(bytes, max(0, lowest(func(n int) bool { return n < low })-1), length)
	}
	if len(r) >= low && len(r) <= high {
		return r
	}
	return even(len(bytes), min(high, max(low, int(min(ceil(total, volume), int64(high))))))
}

// even spreads n subpartitions over tasks.
func even(n, tasks int) []span {
	out := make([]span, tasks)
	for i := range out {
		out[i] = span{i * n / tasks, (i+1)*n/tasks - 1}
	}
	return out
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

// subpartitions is how many parts a producer cuts its output into, before the
// consumer's parallelism is known (0).
func subpartitions(e Edge, producers, consumers, maxConsumers int) int {
	n := consumers
	if n == 0 {
		n = maxConsumers
	}
	switch {
	case e.Broadcast:
		return 1
	case e.Pointwise:
		return max(1, int(ceil(int64(n), int64(producers))))
	}
	return max(1, n)
}

// inputs maps the partitions of an edge to consumers. For an edge between all,
// spans are the subpartitions of each; nil: spread evenly.
func inputs(e Edge, producers, subs, consumers int, spans []span) []joblog.InputRange {
	out := make([]joblog.InputRange, consumers)
	all := joblog.InputRange{LastPartition: producers - 1, LastSubpartition: subs - 1}
	if spans == nil {
		spans = even(subs, consumers)
	}
	for i := range out {
		r := all
		switch {
		case e.Broadcast:
		case !e.Pointwise:
			r.FirstSubpartition, r.LastSubpartition = spans[i].first, spans[i].last
		case consumers < producers:
			r.FirstPartition, r.LastPartition = i*producers/consumers, (i+1)*producers/consumers-1
		default:
			// Several consumers share a producer.
			p := i * producers / consumers
			first := (p*consumers + producers - 1) / producers
			next := ((p+1)*consumers + producers - 1) / producers
			s := even(subs, next-first)[i-first]
			r = joblog.InputRange{FirstPartition: p, LastPartition: p, FirstSubpartition: s.first, LastSubpartition: s.last}
		}
		out[i] = r
	}
	return out
}

// decide settles the parallelism of a vertex whose producers have all finished,
// and the subpartitions of its tasks on edges between all (nil: evenly).
func (c ParallelismConfig) decide(v *vertex) (parallelism int, spans []span) {
	low, high := c.Min, v.high(c)
	low = min(low, high)
	var total int64
	var sums []int64
	balance, most, longest := true, 0, 0
	for _, e := range v.in {
		if e.Broadcast {
			continue
		}
		if e.Pointwise {
			balance = false
		}
		most, longest = max(most, e.from.parallelism), max(longest, e.subpartitions)
		if n := e.subpartitions - len(sums); n > 0 {
			sums = append(sums, make([]int64, n)...)
		}
		for _, t := range e.from.tasks {
			for i, b := range t.parts[e.output].bytes {
				if i < len(sums) {
					sums[i] += b
				}
				total += b
			}
		}
	}
	switch {
	case most == 0:
		return low, nil // all is broadcast
	case balance:
		spans = balanced(sums, c.DataPerTask, low, high, most)
		return len(spans), spans
	}
	n := max(ceil(total, c.DataPerTask), ceil(int64(longest), maxPairs))
	return int(min(max(n, int64(low)), int64(high))), nil
}
