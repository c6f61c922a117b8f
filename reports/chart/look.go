package chart

import (
	"fmt"
	"image/color"
)

// Colours of the PNGs: those of the page's light setting.
var (
	ink      = color.NRGBA{0x1f, 0x24, 0x2b, 0xff}
	dim      = color.NRGBA{0x66, 0x6e, 0x79, 0xff}
	gridInk  = color.NRGBA{0xe3, 0xe6, 0xea, 0xff}
	bed      = color.NRGBA{0xf3, 0xf4, 0xf6, 0xff}
	pointInk = color.NRGBA{0x00, 0x72, 0xb2, 0xb8}
	bandInk  = color.NRGBA{0x00, 0x72, 0xb2, 0x2c}
	faultInk = color.NRGBA{0xc4, 0x3e, 0x00, 0xff}
	doneInk  = color.NRGBA{0x00, 0x7a, 0x5a, 0xff}
	series   = []color.NRGBA{{0x00, 0x72, 0xb2, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0xcc, 0x79, 0xa7, 0xff}, {0x56, 0xb4, 0xe9, 0xff}}
	taskInks = [states]color.NRGBA{{0x9a, 0xa1, 0xab, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x8f, 0xc9, 0xee, 0xff}, {0x00, 0x72, 0xb2, 0xff}}
)

var (
	goodInk    = color.NRGBA{0x00, 0x70, 0x4f, 0xff}
	rangeInk   = color.NRGBA{0x66, 0x6e, 0x79, 0x26}
	pointSolid = color.NRGBA{0x00, 0x72, 0xb2, 0xff}
	paperInk   = color.NRGBA{0xff, 0xff, 0xff, 0xff}
)

func pale(c color.NRGBA) color.NRGBA {
	c.A = 0x73
	return c
}

// look is what a class means on paper; the page's style sheet says the same of
// the light setting.
type look struct {
	fill, stroke color.NRGBA
	width        float64 // of the stroke, px
	dashes       []float64
	size         float64 // of text, px; 0: 12
	bold         bool
}

var looks = map[string]look{
	"lab": {fill: ink}, "val": {fill: ink}, "dim": {fill: dim}, "tick": {fill: dim}, "strong": {fill: ink, bold: true}, "small": {fill: dim, size: 11},
	"good": {fill: goodInk}, "bad": {fill: faultInk},
	"grid": {stroke: gridInk, width: 1}, "row": {stroke: gridInk, width: 1}, "axis": {stroke: dim, width: 1}, "unity": {stroke: ink, width: 1.2},
	"range": {fill: rangeInk}, "bed": {fill: bed}, "hatch": {stroke: dim, width: 1}, "frame": {stroke: dim, width: 1},
	"whisker": {stroke: ink, width: 2}, "thread": {stroke: dim, width: 1.2}, "level": {stroke: pointSolid, width: 2.4},
	"faster": {fill: goodInk}, "slower": {fill: faultInk}, "same": {fill: ink}, "unsure": {fill: paperInk, stroke: ink, width: 1.8},
	"wfaster": {stroke: goodInk, width: 2.4}, "wslower": {stroke: faultInk, width: 2.4}, "wsame": {stroke: ink, width: 2.4}, "wunsure": {stroke: dim, width: 1.6},
	"dot": {fill: pointSolid}, "med": {fill: ink}, "rate": {stroke: ink, width: 1.5}, "under": {fill: bandInk},
	"fault": {stroke: faultInk, width: 2}, "faulttext": {fill: faultInk, bold: true}, "mark": {stroke: ink, width: 1.2, dashes: []float64{3, 3}}, "marktext": {fill: ink},
	"chslower": {stroke: faultInk, width: 1.6}, "chfaster": {stroke: goodInk, width: 1.6}, "slowertext": {fill: faultInk, bold: true}, "fastertext": {fill: goodInk, bold: true},
	"ci": {fill: bandInk}, "pt": {fill: pointInk}, "s1": {fill: series[0]}, "s2": {fill: series[1]}, "s3": {fill: series[2]}, "s4": {fill: series[3]}, "s5": {fill: series[4]},
	"t0": {fill: taskInks[0]}, "t1": {fill: taskInks[1]}, "t2": {fill: taskInks[2]}, "t3": {fill: taskInks[3]},
	"ckok": {fill: pale(doneInk)}, "ckfail": {fill: pale(faultInk)}, "ckpending": {fill: pale(dim)}, "ckdone": {fill: doneInk}, "ckcross": {stroke: faultInk, width: 2},
	"hd": {fill: paperInk}, "hl": {fill: ink}, "hds": {fill: paperInk, size: 11}, "hls": {fill: ink, size: 11},
}

func init() {
	for i, c := range heatInks {
		looks[fmt.Sprintf("h%d", i)] = look{fill: c}
	}
}
