// Package stats describes samples and compares them: their middle, their
// spread, intervals, exact tests, change points, and the signs that one number
// does not do samples justice.
//
// Samples are few (three to thirty trials a cell), skewed and without a known
// distribution, so everything rests on ranks, signs and medians:
//
//   - the median is the headline, its interval is distribution-free: two order
//     statistics, chosen so that they enclose the median of the population
//     with at least the asked probability. Too few samples have no interval;
//   - percentiles are of the nearest rank: a value that was really measured;
//   - the deviation is that of a sample (n-1);
//   - ratios are compared on logarithms, with the percentile bootstrap of the
//     median. Its distribution is exact: which points of the sample the middle
//     of a resample falls on depends on n alone, so nothing is drawn. That is
//     what 10,000 resamples come near to, and costs less than a hundred;
//   - sign-flip, Mann-Whitney and Fisher tests are exact for the sizes at hand.
//     A test that draws at random counts what was seen among the draws,
//     p = (c+1)/(B+1), and is a function of its seed.
//
// Functions take finite numbers, leave their arguments as they are, and say by
// a false or an absent value what the samples are too few to tell. They never
// return NaN or an infinity. Equal input gives equal output, bit for bit.
package stats
