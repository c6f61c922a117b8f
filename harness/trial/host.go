package trial

import (
	"context"

	"benchrun/harness/probe"
	"benchrun/runtime/timeline"
)

// sampleHost puts host-sample events into a timeline until the function that
// it returns is called: what else the machine did is part of a trial's story.
func sampleHost(log *timeline.Log) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		probe.Watch(ctx, probe.SampleEvery, func(s probe.Sample) {
			e := timeline.Of(timeline.HostSample)
			e.Detail = s.String()
			log.Add(e)
		})
	}()
	return func() {
		cancel()
		<-done
	}
}
