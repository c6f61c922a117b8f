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
// nobody cares. Decide judges a run, as a gate does; Within judges all columns of
// a run against its base build and its reference cell in the same way, as one
// look, for summaries and pages: two answers on the same samples would be one too
// many. The number of primary comparisons of each kind divides their error.
//
// A pair with a 0 on one side has no ratio; it ranks at the end of its direction.
// With several builds of which none is named as the base nothing is compared.
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
//     absolute deviation of the pairs; in the second look of several cells at a
//     quarter of that error;
//   - the exact sign-flip test, which holds for noise of any symmetric shape, in
//     cells whose noise is beyond 1.5 thresholds (2 in the second look of
//     several cells) and below 8 pairs (15 in a second look), where the
//     bootstrap is too sure of itself. Without that test goes a change beyond
//     doubt: every pair leaves the threshold on one side, and the pairs scatter by
//     less than half of the change.
//
// Five pairs reach p = 1/32 in the exact test and six 1/64: with them one cell, or
// three, can be slower by it, others only beyond doubt.
//
// In two looks, Screen alarms where a cell might be slower (half of the
// threshold, an interval of 60 %) and Confirmed judges old and new blocks
// together, the sign-flip test at 1.75 %. Simulated over whole calls of 1, 4 and
// 16 cells (sim_test.go; pair noise of about 10 %, threshold 10 %); false alarms
// also with two humps, heavy tails, a noise of 40 % and trials that never end:
//
//	5 to 8 pairs, one look             false alarms of a call at most 5 %
//	5+5 to 8+10 pairs, two looks       false alarms at most 2 %
//	8+10 pairs, two looks              slow-downs by 20 % in one cell of 1 to 16 found: 95 % and more
//	8+7 pairs, 5 % threshold           false alarms at most 2 %; of one cell 80 % of slow-downs by 10 % found
//	15, then 15 more, 5 % threshold    false alarms at most 2 %; of 4 and 16 cells 80 % of slow-downs by 10 % found
//	two runs of 5 to 8 samples         false alarms at most 2 %
//
// For 4 and 16 cells a slow-down by 10 % takes a first look of 15 pairs and 15
// more of what alarmed; 15 pairs in all are too few there. No change at all is
// called the same in half of the cases with 8 pairs and in 85 % with 16, else
// inconclusive; a change of the threshold's size in 7 %.
//
// # Runs of different times
//
// They do not pair, and something may lie between them that is no change of the
// program. Ratios are of the medians, with an interval that must exclude 1 even
// when it is wider by Rules.Offset; what that hides is inconclusive. Same is
// judged on the plain interval: widened, it would never fit into a band of the
// offset's size, and the reader is told that the runs are of different times.
// Below 8 samples a side the runs must not overlap, and a random division of the
// samples must do so rarely, 1.5 % over all cells, or the change be beyond doubt.
// Only runs of one machine, workload text, primary metric, target and set of
// overrides are compared. A text that was edited after its run is another one;
// the name of the host alone is a doubt where the hardware is known and alike.
//
// # Failures
//
// A trial that did not end well is counted and never a number. Where it stands
// against one that did, it ranks last; such pairs can take a verdict away but
// give none, so that an infrastructure failure is no regression. With less than
// half of the planned pairs there is no ratio. A cell that the target of one side
// alone does not support has lost its metric, and counts as failed. Failures are tested apart, with
// Fisher's exact test, as a warning, and give the exit code of a failed run.
// The most severe code wins; advisory metrics change none. These are judged
// without a correction, and called faster or slower only if they are
// discoveries at 10 % among all advisory comparisons (Benjamini-Hochberg) or beyond
// doubt.
//
// # Trends
//
// A night's value is the median pair ratio to the pinned reference build. A
// change point takes p <= 0.02 of the permutation test and a step of 5 %: of
// ten nights it finds a clean step with three nights or more on either side,
// and a last bad night alone is not one. It is advice. Where the machine, the text
// of the workload, the overrides or the reference build changed, a series is cut,
// and changes are looked for within each stretch alone.
//
// # Derived metrics
//
// What job recovery of batch jobs costs and saves takes several trials of a block
// (Derive): the same cell without it, and the same job undisturbed, which is the
// cell that differs in axes of the scenario alone. They go with the medians of
// the blocks into summary.json; NoiseFloor says what of it cannot be seen.
//
// Everything needs run.json and trials.jsonl alone, and is a function of them.
// Summarize is the only place where summary.json comes from.
package verdict
