// Package chart draws the pictures of a report: points of samples, bars of
// medians, and the timeline of a trial.
//
// A chart is a value without behaviour of its own. It draws itself twice: as
// SVG for the page, where colours follow the reader's light or dark setting and
// hovering tells the exact number, and as PNG through gonum/plot, for places
// that take no page. Both share scales, ticks, palette and layout.
//
// Every chart draws whatever it is given: nothing at all, one sample, equal
// samples, zeros. Numbers that are not finite are left out. Equal charts give
// equal bytes.
//
// Colours are those of Okabe and Ito, which people with any colour vision can
// tell apart; shapes and words say the same once more.
package chart
