package inflight

import (
	"benchrun/runtime/graph"
	"benchrun/runtime/options"
	"benchrun/runtime/snapshot"
)

// PathFor is the recovery path that options ask for. D counts only with R and
// U (FLINK-40518).
func PathFor(v options.Values) Path {
	switch r := options.RecoverOutputDownstream.Get(v); {
	case r && options.DuringRecovery.Get(v) && options.UnalignedEnabled.Get(v):
		return PathDuring
	case r:
		return PathDownstream
	default:
		return PathUpstream
	}
}

// PlanFor plans the restore of a checkpoint's in-flight data; nil if it has
// none, or if the options say to drop them.
func PlanFor(meta *snapshot.Metadata, g *graph.Graph, v options.Values) (*Plan, error) {
	if meta.InFlightBytes() == 0 || options.WithoutChannelStateCheckpoint.Get(v) == meta.Checkpoint {
		return nil, nil
	}
	return NewPlan(meta, g, PathFor(v))
}
