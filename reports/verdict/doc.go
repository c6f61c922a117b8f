// Package verdict turns the samples of a run into its summary, and pairs of
// cells into verdicts.
//
// Blocks pair: two cells of one block ran minutes apart on the same machine,
// so what the machine did to one it did to the other. A pair takes two trials
// that are ok; a trial that failed is counted, never replaced by a number.
//
// There are four verdicts, for the direction in which the metric improves:
//
//	faster, slower  the interval of the ratio excludes 1 and the ratio leaves the band
//	same            the whole interval lies inside the band
//	inconclusive    everything else, and always below MinPairs pairs
//
// "Not shown to differ" is not "same". The band is the threshold of the
// metric: a relative part, and an absolute one below which nobody cares.
//
// Summarize is the only place where summary.json comes from. It needs run.json
// and trials.jsonl alone.
package verdict
