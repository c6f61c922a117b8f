// Package verdict turns the samples of runs into a summary, verdicts, the
// decision of a gate and the trend over nights.
//
// Blocks pair: two columns of one block ran minutes apart on the same machine,
// so what the machine did to one it did to the other. A pair takes two trials
// that are ok. There are four verdicts, for the direction in which the metric
// improves:
//
//	faster, slower  the interval of the median pair ratio excludes 1 and the ratio leaves the band
//	same            the 90 % interval lies inside the band
//	inconclusive    everything else, and always below MinPairs pairs
//
// "Not shown to differ" is not "same". The band is the threshold of the metric:
// a relative part, the same factor both ways, and an absolute one below which
// nobody cares. Compare judges one pair of columns, as tables do; Decide judges
// a run, as a gate does.
//
// # Errors of a gate call
//
// A call judges the primary metric of every cell. Its one-sided error of 5 % is
// divided by the number of judged cells (Bonferroni), a number that the plan
// sets and no measurement moves: so the verdict of a cell rests on its own
// trials, on those of its base, and on how many cells are judged. Not judged
// are cells that the target does not support and those that the plan left out.
// On top of the interval, faster and slower take
//
//   - a change larger than the noise of so many pairs, the normal quantile of
//     the same error times the error of the median, whose scale is the median
//     absolute deviation of the pairs;
//   - in cells whose noise is beyond 1.5 thresholds, the exact sign-flip test,
//     which holds for noise of any symmetric shape.
//
// In two looks, Screen alarms where a cell might be slower (half of the
// threshold, an interval of 60 %) and Confirmed judges old and new blocks
// together, the sign-flip test at 2 %. Whatever Confirmed finds slower, Screen
// would have alarmed on with the same blocks. Simulated over whole calls of 1,
// 4 and 16 cells (sim_test.go; pair noise of about 10 %, threshold 10 %):
//
//	8 pairs, one look      false alarms below 2 %, 93 % of slow-downs by 20 % found in one cell, all where every cell slows
//	8+8 pairs, two looks   false alarms below 0.5 %, 95 % (16 cells) to 99 % (one cell) of slow-downs by 20 % in one cell found
//	8+7 pairs, 5 % threshold, one cell      false alarms 2 %, 82 % of slow-downs by 10 % found
//	15+15 pairs, 5 % threshold, 4 and 16    false alarms below 2 %, 94 % and 88 % found
//
// With 8+7 pairs, a threshold of 5 % and several cells, 2.5 % of the calls are
// false alarms: plan more pairs for small thresholds. Two humps, heavy tails, a
// noise of 40 % and trials that never end stay within 5 % and 2 %, too. Of 16
// cells at 8 pairs each alone is found in 56 % of the cases. No change at all is
// called the same in 54 % of the cases with 8 pairs and in 87 % with 16, else
// inconclusive; a change of the threshold's size in 6 %.
//
// # Runs of different times
//
// They do not pair, and something may lie between them that is no change of the
// program. Ratios are of the medians, with an interval that must exclude 1 even
// when it is wider by Rules.Offset; what that hides is inconclusive. Same is
// judged on the plain interval: widened, it would never fit into a band of the
// offset's size, and the reader is told that the runs are of different times.
// Only runs of one machine, workload text, primary metric, target and set of
// overrides are compared.
//
// # Failures
//
// A trial that did not end well is counted and never a number. Where it stands
// against one that did, it ranks last; such pairs can take a verdict away but
// give none, so that an infrastructure failure is no regression. With less than
// half of the planned pairs there is no ratio. Failures are tested apart, with
// Fisher's exact test, as a warning, and give the exit code of a failed run.
// The most severe code wins; advisory metrics change none. These are judged
// without a correction, and called faster or slower only if they are
// discoveries at 10 % among all advisory comparisons (Benjamini-Hochberg).
//
// # Trends
//
// A night's value is the median pair ratio to the pinned reference build. A
// change point takes p <= 0.02 of the permutation test and a step of 5 %: of
// ten nights it finds a clean step with three nights or more on either side,
// and a last bad night alone is not one. It is advice.
//
// Everything needs run.json and trials.jsonl alone, and is a function of them.
// Summarize is the only place where summary.json comes from.
package verdict
