package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

func main() {
	role := flag.String("role", "", "internal: server, serve, index, or a trial as JSON")
	short := flag.Bool("short", false, "fewer repetitions")
	minP1 := flag.Float64("min-p1", 0, "fail where P1 falls below this ratio to the floor")
	only := flag.String("only", "",
		"measure P1, P2 and P5 (durable), P4 (stream), P8 (postgres), what is served (serve), the pages (pages), the dashboard (stats), P9 (search), P10 (vectors), P11 (index), P13 (proxy), the schedules (schedule) or what is found (retrieval) alone")
	verbose := flag.Bool("v", false,
		"with -only retrieval: each question, the places of its answer, and what came first")
	database := flag.String("postgres", os.Getenv("REGIE_TEST_POSTGRES"),
		"the PostgreSQL of P8: each trial has a schema of its own there")
	flag.Parse()
	var err error
	switch {
	case *role == "server":
		err = serve()
	case *role == "serve":
		err = serveAlone()
	case *role == "index":
		err = indexOnce()
	case strings.HasPrefix(*role, "proxy ") || strings.HasPrefix(*role, "forwarder "):
		who, upstream, _ := strings.Cut(*role, " ")
		err = forwards(who, upstream)
	case *role != "":
		err = compete(*role)
	case *only == "retrieval":
		err = (&session{verbose: *verbose}).retrieving()
	case *only == "vectors":
		err = (&session{rounds: 3}).nearing()
	case *only == "index":
		err = (&session{rounds: 3}).indexing()
	case *only == "search":
		err = (&session{rounds: 7}).searching()
	case *only == "schedule":
		err = (&session{rounds: 5}).scheduling()
	case *only == "stats":
		err = (&session{rounds: 5}).reporting()
	default:
		err = bench(*short, *only, *database, *minP1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// session is one bench: the model server and the measurements against it.
type session struct {
	url    string
	rounds int // repetitions of each pair
	scale  int // runs in a trial, relative to the short form
	// database is the URL of a PostgreSQL server; empty skips it.
	database string
	verbose  bool // each question is shown with what was found
	// lastGrowth is the last trial's late gap divided by its early one.
	lastGrowth float64
}

func bench(short bool, only, database string, minP1 float64) error {
	url, stop, err := startServer()
	if err != nil {
		return err
	}
	defer stop()
	s := &session{url: url + "/v1", rounds: 5, scale: 3, database: database}
	if short {
		s.rounds, s.scale = 3, 1
	}
	fmt.Printf("%s, %d processors, %s, %s/%s; each figure is the median of %d pairs\n\n", cpuName(), runtime.NumCPU(),
		runtime.Version(), runtime.GOOS, runtime.GOARCH, s.rounds)
	fmt.Println("| figure | Regie | floor | ratio | goal |")
	fmt.Println("|---|---|---|---|---|")
	switch only {
	case "stream":
		return s.streaming()
	case "postgres":
		return s.sharing()
	case "serve":
		return s.serving()
	case "proxy":
		return s.proxying()
	case "pages":
		return s.browsing()
	}
	worst, err := s.throughput()
	if err != nil || only == "durable" {
		return err
	}
	for _, measure := range []func() error{
		s.growth, s.chatting, s.streaming, s.starting, s.serving, s.reporting,
		s.browsing, s.searching, s.indexing, s.sharing, s.proxying, s.retrieving, s.scheduling,
	} {
		if err := measure(); err != nil {
			return err
		}
	}
	if worst < minP1 {
		return fmt.Errorf("P1 is %.2f × floor, at least %.2f is asked for", worst, minP1)
	}
	return nil
}

// throughput measures P1, P2 and the memory of P5, at 1, 16 and 64 runs side by side.
func (s *session) throughput() (worst float64, err error) {
	worst = 1e9
	for _, width := range []struct {
		n, runs      int
		floor        string
		p1, p2, goal string
	}{
		{1, 150, "floor-full", "≥ 0.85", "", ""},
		{16, 600, "floor-group", "≥ 0.80", "≤ 1.4", ""},
		{64, 1000, "floor-group", "≥ 0.80", "≤ 1.4", ""},
	} {
		var ours, theirs, ratio, ourP99, theirP99, ratioP99, peak, ourCPU, theirCPU []float64
		var ourGaps, theirGaps []int64
		for range s.rounds {
			a, gapsA, err := s.trial(trial{
				Contestant: "regie", Steps: 3,
				Concurrent: width.n, Runs: width.runs * s.scale,
			})
			if err != nil {
				return 0, err
			}
			b, gapsB, err := s.trial(trial{
				Contestant: width.floor, Steps: 3,
				Concurrent: width.n, Runs: width.runs * s.scale,
			})
			if err != nil {
				return 0, err
			}
			rateA, rateB := float64(a.Exchanges)/a.Seconds, float64(b.Exchanges)/b.Seconds
			ours, theirs, ratio = append(ours, rateA), append(theirs, rateB), append(ratio, rateA/rateB)
			ourP99, theirP99, ratioP99 = append(ourP99, a.P99), append(theirP99, b.P99), append(ratioP99, a.P99/b.P99)
			peak = append(peak, a.PeakMiB)
			ourCPU, theirCPU = append(ourCPU, a.CPU), append(theirCPU, b.CPU)
			ourGaps, theirGaps = append(ourGaps, gapsA...), append(theirGaps, gapsB...)
		}
		worst = min(worst, median(ratio))
		row("P1 durable tool exchanges/s, ×%d", width.n)(median(ours), median(theirs), median(ratio), width.p1, "%.0f")
		row("processor time of an exchange, µs, ×%d", width.n)(median(ourCPU), median(theirCPU),
			median(ourCPU)/median(theirCPU), "", "%.0f")
		if width.n == 1 {
			for _, p := range []struct {
				p    float64
				goal string
			}{{50, "≤ 1.2"}, {99, "≤ 1.4"}} {
				a, b := float64(percentile(ourGaps, p.p))/1e6, float64(percentile(theirGaps, p.p))/1e6
				row("P2 gap p%.0f, ms, ×1", p.p)(a, b, a/b, p.goal, "%.3f")
			}
		} else {
			row("P2 run p99, ms, ×%d", width.n)(median(ourP99), median(theirP99), median(ratioP99), width.p2, "%.1f")
		}
		if width.n == 64 {
			fmt.Printf("| P5 peak memory, MiB, ×64 | %.0f | | | ≤ 64 |\n", median(peak))
		}
	}
	return worst, nil
}

// growth measures P3: one thread of 500 exchanges.
func (s *session) growth() error {
	var ratio, disk, allocs []float64
	for range s.rounds {
		r, _, err := s.trial(trial{Contestant: "regie", Steps: 500, Concurrent: 1, Runs: 1})
		if err != nil {
			return err
		}
		ratio = append(ratio, s.lastGrowth)
		disk, allocs = append(disk, r.DiskMiB), append(allocs, r.LateAlloc/r.EarlyAlloc)
	}
	fmt.Printf("| P3 gap at exchange 490 ÷ at 10 | %.2f | | | ≤ 1.3 |\n", median(ratio))
	fmt.Printf("| P3 database after 500 exchanges, MiB | %.2f | | | ≤ 3 |\n", median(disk))
	fmt.Printf("| P3 bytes allocated in an exchange, at 480 ÷ at 20 | %.2f | | | 0.9 – 1.1 |\n", median(allocs))
	return nil
}

// chatting measures one long chat with a bounded prompt: the cost of a round must not grow with the
// number of rounds before it (spec 2.3).
func (s *session) chatting() error {
	rounds := 700 * s.scale
	r, _, err := s.trial(trial{Contestant: "regie", Concurrent: 1, Runs: rounds, Chat: 12_000})
	if err != nil {
		return err
	}
	fmt.Printf("| 2.3 a chat's round %d ÷ its round 100 | %.2f | | | ≤ 1.3 |\n", rounds, r.LateMS/r.EarlyMS)
	return nil
}

func row(name string, args ...any) func(ours, theirs, ratio float64, goal, format string) {
	return func(ours, theirs, ratio float64, goal, format string) {
		fmt.Printf("| "+name+" | "+format+" | "+format+" | %.2f | %s |\n",
			append(append([]any{}, args...), ours, theirs, ratio, goal)...)
	}
}

// trial runs a trial in a separate process and returns the gaps that the server saw.
func (s *session) trial(t trial) (result, []int64, error) {
	if _, err := fetchGaps(s.url); err != nil {
		return result{}, nil, err
	}
	r, err := s.run(t)
	if err != nil {
		return result{}, nil, err
	}
	gaps, err := fetchGaps(s.url)
	var ns, early, late []int64
	for _, g := range gaps {
		ns = append(ns, g.NS)
		switch {
		case g.Step >= 5 && g.Step <= 25:
			early = append(early, g.NS)
		case g.Step >= t.Steps-20 && g.Step < t.Steps:
			late = append(late, g.NS)
		}
	}
	if len(early) > 0 && len(late) > 0 {
		s.lastGrowth = float64(median(late)) / float64(median(early))
	}
	return r, ns, err
}

// run runs a trial in a separate process.
func (s *session) run(t trial) (r result, err error) {
	t.URL = s.url
	encoded, err := json.Marshal(t)
	if err != nil {
		return r, err
	}
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	child := exec.Command(self, "-role", string(encoded))
	child.Stderr = os.Stderr
	out, err := child.Output()
	if err != nil {
		return r, fmt.Errorf("%s at %d runs: %w", t.Contestant, t.Concurrent, err)
	}
	err = json.Unmarshal(out, &r)
	return r, err
}

func startServer() (url string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	child := exec.Command(self, "-role", "server")
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := child.Start(); err != nil {
		return "", nil, err
	}
	url, err = bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(url), func() { _ = errors.Join(in.Close(), child.Wait()) }, err
}

func cpuName() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, 4096))
	for line := range strings.SplitSeq(string(data), "\n") {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	return "unknown processor"
}

// starting measures P6: from nothing to an engine that takes requests, its database made and
// migrated.
func (s *session) starting() error {
	var open []float64
	for range s.rounds {
		r, _, err := s.trial(trial{Contestant: "regie", Steps: 3, Concurrent: 1, Runs: 1})
		if err != nil {
			return err
		}
		open = append(open, r.OpenMS)
	}
	fmt.Printf("| P6 start to ready, empty, ms | %.1f | | | ≤ 30 |\n", median(open))
	return nil
}
