package main

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"benchrun/harness/result"

	"github.com/rogpeppe/go-internal/testscript"
)

// measured writes a run folder with samples that are made up:
//
//	measured DIR [base=1 head=1.25] [ok=1] [n=8] [noise=0.03] [day=1] [cells=2] [seed=1] [failed=0] [wrong=0] [machine=m] [text=t] [recorded=t] [rev=r]
//
// base and head are builds with the factor by which they are slower; without
// them there is one build, whose factor is ok. All cells are alike. text is that
// of the workload, and recorded the one whose hash the run has.
func measured(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: measured DIR KEY=VALUE...")
	}
	text := map[string]string{"machine": "m", "text": "t", "recorded": "", "rev": "r"}
	num := map[string]float64{"ok": 1, "n": 8, "noise": 0.03, "day": 1, "cells": 2, "seed": 1}
	builds := map[string]float64{}
	for _, a := range args[1:] {
		k, v, _ := strings.Cut(a, "=")
		if _, isText := text[k]; isText {
			text[k] = v
			continue
		}
		x, err := strconv.ParseFloat(v, 64)
		ts.Check(err)
		if k == "base" || k == "head" {
			builds[k] = x
		} else {
			num[k] = x
		}
	}
	if len(builds) == 0 {
		builds["this"] = num["ok"]
	}
	if text["recorded"] == "" {
		text["recorded"] = text["text"]
	}
	dir := ts.MkAbs(args[0])
	started := time.Date(2026, 3, int(num["day"]), 2, 0, 0, 0, time.UTC)
	run := result.Run{
		Schema: result.Schema, Run: filepath.Base(dir), State: result.Complete, Builds: map[string]result.Build{}, Command: []string{"benchrun"}, Overrides: []string{},
		Tool: result.Tool{Version: "1", Revision: text["rev"], Go: "go1"}, Seed: 42, Targets: map[string]string{"embedded": "1"}, Started: started,
		Workloads: []result.Workload{{Name: "w", Primary: "time_to_first_checkpoint_s", File: "w.toml", SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(text["recorded"]))), Text: text["text"], Expected: []string{"time_to_first_checkpoint_s"}}},
		Machine:   result.Machine{CPUModel: text["machine"], Cores: 2, MemoryBytes: 1 << 30, Kernel: "6.1"},
	}
	ended := started.Add(time.Hour)
	run.Ended = &ended
	for name := range builds {
		run.Builds[name] = result.Build{Path: "/" + name, SHA256: name + text["rev"], Revision: name + "-" + text["rev"]}
		if name == "base" { // pinned: the same on every day
			run.Builds[name] = result.Build{Path: "/base", SHA256: "base", Revision: "base-r"}
		}
	}
	if len(builds) > 1 {
		run.BaseBuild = "base"
	}
	random := rand.New(rand.NewPCG(uint64(num["seed"]), uint64(num["day"])))
	var lines strings.Builder
	order := 0
	for c := range int(num["cells"]) {
		run.Plan.Cells = append(run.Plan.Cells, result.Cell{Workload: "w", Cell: fmt.Sprintf("p=%d", c), Flags: map[string]any{"p": c}})
	}
	for block := range int(num["n"]) {
		for _, c := range run.Plan.Cells {
			mood := 1 + 0.1*random.NormFloat64()
			for _, b := range []string{"base", "head", "this"} {
				factor, ok := builds[b]
				if !ok {
					continue
				}
				order++
				run.Plan.Order = append(run.Plan.Order, result.Slot{Workload: "w", Cell: c.Cell, Build: b, Block: block})
				value := factor * math.Max(mood, 0.7) * math.Exp(num["noise"]*random.NormFloat64())
				outcome, detail := "ok", fmt.Sprintf(`"metrics":{"time_to_first_checkpoint_s":%.6f,"time_to_running_s":%.6f}`, value, value/2)
				slot := float64(order)
				switch {
				case slot <= num["wrong"]:
					outcome, detail = "incorrect", `"reason":"1 record lost","phase":"verify"`
				case slot <= num["wrong"]+num["failed"]:
					outcome, detail = "timeout", `"reason":"nothing came","phase":"recover"`
				}
				fmt.Fprintf(&lines, `{"trial":"%04d-w","workload":"w","cell":%q,"flags":{},"build":%q,"revision":%q,"block":%d,"warmup":false,"order":%d,"target":"embedded","outcome":%q,"started":%q,"wall_s":9,"options":{},%s}`+"\n",
					order, c.Cell, b, b+"-"+text["rev"], block, order, outcome, started.Add(time.Duration(order)*10*time.Second).Format(time.RFC3339), detail)
			}
		}
	}
	run.Plan.Trials = len(run.Plan.Order)
	ts.Check(os.MkdirAll(dir, 0o777))
	ts.Check(result.WriteJSON(filepath.Join(dir, "run.json"), &run))
	ts.Check(result.WriteFile(filepath.Join(dir, "trials.jsonl"), []byte(lines.String())))
}

// nights writes a folder of runs, one a night: nights DIR N FROM FACTOR. From
// night FROM on the head build is slower by FACTOR than the pinned base.
func nights(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: nights DIR N FROM FACTOR")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	from, err := strconv.Atoi(args[2])
	ts.Check(err)
	for night := 1; night <= n; night++ {
		factor := "1"
		if night >= from {
			factor = args[3]
		}
		measured(ts, false, []string{fmt.Sprintf("%s/night-%02d", args[0], night), "base=1", "head=" + factor, fmt.Sprintf("day=%d", night), fmt.Sprintf("rev=r%d", night), "cells=1"})
	}
}
