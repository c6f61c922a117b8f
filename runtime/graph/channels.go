package graph

// Targets is the inclusive range of downstream subtasks that an upstream
// subtask has a subpartition for on this edge.
func Targets(p Partitioner, upstream, downstream, subtask int) (first, last int) {
	switch p {
	case Forward:
		return subtask, subtask
	case Rescale:
		return pointwiseTargets(upstream, downstream, subtask)
	default:
		return 0, downstream - 1
	}
}

// Sources is the inclusive range of upstream subtasks that a downstream
// subtask has a channel for on this edge; channel i is subtask first+i.
func Sources(p Partitioner, upstream, downstream, subtask int) (first, last int) {
	switch p {
	case Forward:
		return subtask, subtask
	case Rescale:
		return pointwiseTargets(downstream, upstream, subtask)
	default:
		return 0, upstream - 1
	}
}

// pointwiseTargets spreads n peers evenly over m: with m >= n each of ours has
// one or more peers of its own, else several of ours share one.
func pointwiseTargets(ours, peers, i int) (first, last int) {
	if ours >= peers {
		k := i * peers / ours
		return k, k
	}
	return (i*peers + ours - 1) / ours, ((i+1)*peers - 1) / ours
}
