package main

import (
	"context"
	"errors"
	"os"
	"runtime/pprof"
	"strconv"
)

// profiled runs one contestant in this process and writes its CPU profile, to see where the time
// goes.
func profiled(path, contestant string, concurrent int) error {
	url, stop, err := startServer()
	if err != nil {
		return err
	}
	defer stop()
	dir, err := os.MkdirTemp("", "regie-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t := trial{Contestant: contestant, URL: url + "/v1", Steps: 3, Concurrent: concurrent, Runs: 60*concurrent + 400}
	c, err := t.open(dir, func() {})
	if err != nil {
		return err
	}
	for i := range concurrent {
		if err := c.run(context.Background(), "warm"+strconv.Itoa(i), t.Steps); err != nil {
			return errors.Join(err, c.close())
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return errors.Join(err, f.Close())
	}
	_, _, err = t.all(c)
	pprof.StopCPUProfile()
	return errors.Join(err, c.close(), f.Close())
}
