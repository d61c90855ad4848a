package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/regie-run/regie/internal/index"
	"github.com/regie-run/regie/internal/workspace"
)

// indexing is what one process made of the Go sources.
type indexing struct {
	Seconds   float64 `json:"seconds"`   // cold
	Unchanged float64 `json:"unchanged"` // seconds of a second update
	CPU       float64 `json:"cpu"`       // seconds of both
	PeakMiB   float64 `json:"peak_mib"`  // of the process
	DiskMiB   float64 `json:"disk_mib"`
	Files     int64   `json:"files"`
	Chunks    int64   `json:"chunks"`
	Bytes     int64   `json:"bytes"`
}

// indexing measures P11: the index of the Go source tree, made from nothing and brought up to date,
// each time in a process of its own.
func (s *session) indexing() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var cold, unchanged, cpu, peak []float64
	var last indexing
	for range s.rounds {
		child := exec.Command(self, "-role", "index")
		child.Stderr = os.Stderr
		out, err := child.Output()
		if err != nil {
			return fmt.Errorf("P11: %w", err)
		}
		if err := json.Unmarshal(out, &last); err != nil {
			return err
		}
		cold, unchanged, cpu, peak = append(cold, last.Seconds), append(unchanged, last.Unchanged),
			append(cpu, last.CPU), append(peak, last.PeakMiB)
	}
	seconds := median(cold)
	fmt.Printf("| P11 index of the Go sources, cold, s | %.1f | | | ≤ 10 |\n", seconds)
	fmt.Printf("| P11 the same, files/s; MB/s | %.0f; %.1f | | | |\n", float64(last.Files)/seconds,
		float64(last.Bytes)/1e6/seconds)
	fmt.Printf("| P11 processor time of it, s | %.1f | | | |\n", median(cpu))
	fmt.Printf("| P11 peak memory, MiB | %.0f | | | |\n", median(peak))
	fmt.Printf("| P11 when nothing has changed, s | %.2f | | | ≤ 0.5 |\n", median(unchanged))
	fmt.Printf("\nP11: %d files, %.0f MB of text, %d chunks; the index has %.0f MiB\n\n", last.Files,
		float64(last.Bytes)/1e6, last.Chunks, last.DiskMiB)
	return nil
}

// indexOnce returns one trial of P11.
func indexOnce() (err error) {
	tree, err := goSources()
	if err != nil {
		return err
	}
	root, err := workspace.Open(tree)
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := os.MkdirTemp("", "regie-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	x, err := index.Open(context.Background(), root, index.Config{Path: filepath.Join(dir, "index.db")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	before, err := resources()
	if err != nil {
		return err
	}
	started := time.Now()
	summary, err := x.Update(context.Background(), nil)
	if err != nil {
		return err
	}
	out := indexing{
		Seconds: time.Since(started).Seconds(), Files: summary.Files,
		Chunks: summary.Chunks, Bytes: summary.Bytes,
	}
	started = time.Now()
	if summary, err = x.Update(context.Background(), nil); err != nil {
		return err
	}
	if summary.Read > 0 {
		return fmt.Errorf("P11: %d files were read although nothing has changed", summary.Read)
	}
	out.Unchanged = time.Since(started).Seconds()
	after, err := resources()
	if err != nil {
		return err
	}
	out.CPU, out.PeakMiB = (processor(after)-processor(before))/1e6, float64(after.Maxrss)/1024
	if out.DiskMiB, err = diskUse(dir); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}
