package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	startsOf = 5  // how often the chat is started, times the scale
	keysOf   = 70 // how many keys are pressed while an answer streams in, times the scale
	lastWait = 20 * time.Second
	longest  = 2 * time.Minute // of the whole measurement
)

// terminal measures the chat at a pseudo-terminal: from the start of the process to its prompt, and
// from a key to its letter on the terminal while an answer of 200 pieces a second streams in.
func (s *session) terminal() error {
	dir, err := os.MkdirTemp("", "regie-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "regie")
	if out, err := exec.Command("go", "build", "-o", binary, "./cmd/regie").CombinedOutput(); err != nil {
		return fmt.Errorf("building regie: %w\n%s", err, out)
	}
	model := httptest.NewServer(http.HandlerFunc(streams))
	defer model.CloseClientConnections()
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	var starts []time.Duration
	for range startsOf * s.scale {
		p, took, err := prompted(ctx, binary, dir, model.URL)
		if err != nil {
			return err
		}
		starts = append(starts, took)
		p.close()
	}
	keys, err := typing(ctx, binary, dir, model.URL, keysOf*s.scale)
	if err != nil {
		return err
	}
	fmt.Printf("| the chat, from its start to its prompt, ms, median (slowest of %d) | %s (%s) | | | ≤ 100 |\n",
		len(starts), ms(quantile(starts, 0.5)), ms(quantile(starts, 1)))
	fmt.Printf(
		"| the chat, from a key to its letter while an answer streams in, ms, median, 95 %%, 99 %% (of %d) | %s, %s, %s | | | ≤ 10 |\n",
		len(keys), ms(quantile(keys, 0.5)), ms(quantile(keys, 0.95)), ms(quantile(keys, 0.99)))
	return nil
}

// prompted starts the chat and waits for its prompt.
func prompted(ctx context.Context, binary, dir, model string) (*pty, time.Duration, error) {
	p, err := open(ctx, binary, dir, model)
	if err != nil {
		return nil, 0, err
	}
	took, err := p.until(ctx, "\u203a", p.began)
	if err != nil {
		p.close()
		return nil, 0, err
	}
	return p, took, nil
}

// typing presses keys while an answer streams in, and returns how long each took to be seen.
func typing(ctx context.Context, binary, dir, model string, n int) (keys []time.Duration, err error) {
	p, _, err := prompted(ctx, binary, dir, model)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if _, err := p.master.WriteString("go\r"); err != nil {
		return nil, err
	}
	if _, err := p.until(ctx, "12345", time.Now()); err != nil {
		return nil, err
	}
	for i := range n {
		letter := string(rune(0x4e00 + i)) // each one once, in no answer and in no sequence of the terminal
		pressed := time.Now()
		if _, err := p.master.WriteString(letter); err != nil {
			return nil, err
		}
		took, err := p.until(ctx, letter, pressed)
		if err != nil {
			return nil, err
		}
		keys = append(keys, took)
		time.Sleep(11 * time.Millisecond) // at another place of the frame each time
	}
	return keys, nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }

func quantile(list []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// streams is a model that talks for long: paragraphs, and code.
func streams(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range 8000 {
		piece := "12345 "
		switch i % 100 {
		case 30:
			piece = "\\n\\n```go\\n"
		case 40, 50, 60:
			piece = "func f() { return 12345 }\\n"
		case 70:
			piece = "\\n```\\n\\n"
		}
		const chunk = `data: {"choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}` + "\n\n"
		if _, err := fmt.Fprintf(w, chunk, piece); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(5 * time.Millisecond):
		case <-r.Context().Done():
			return
		}
	}
}

// pty is the chat at a terminal of its own.
type pty struct {
	cmd    *exec.Cmd
	master *os.File
	began  time.Time
	read   chan []byte
	seen   []byte
}

func open(ctx context.Context, binary, dir, model string) (*pty, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	p := &pty{master: os.NewFile(uintptr(fd), "ptmx"), read: make(chan []byte, 1024)}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, err
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, err
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100}); err != nil {
		return nil, err
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, err
	}
	p.cmd = exec.CommandContext(ctx, binary, "chat")
	p.cmd.Dir = work
	p.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TERM=xterm-256color", "REGIE_LANG=en", "REGIE_BELL=off",
		"REGIE_DATA_DIR=" + filepath.Join(dir, "data"), "REGIE_BASE_URL=" + model + "/v1", "REGIE_MODEL=scripted",
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p.began = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.read)
		for {
			buffer := make([]byte, 64<<10)
			n, err := p.master.Read(buffer) // EIO once the program has ended
			if err != nil {
				return
			}
			p.read <- buffer[:n]
		}
	}()
	return p, nil
}

// until reads until a text was written, and says how long after a moment that was.
func (p *pty) until(ctx context.Context, text string, since time.Time) (time.Duration, error) {
	deadline := time.After(lastWait)
	for {
		if at := bytes.Index(p.seen, []byte(text)); at >= 0 {
			p.seen = p.seen[at+len(text):]
			return time.Since(since), nil
		}
		p.seen = p.seen[max(0, len(p.seen)-16):]
		select {
		case data, ok := <-p.read:
			if !ok {
				return 0, errors.New("the chat has ended")
			}
			p.seen = append(p.seen, data...)
		case <-ctx.Done():
			return 0, fmt.Errorf("measuring the chat takes longer than %s: %w", longest, ctx.Err())
		case <-deadline:
			return 0, fmt.Errorf("%q does not come", text)
		}
	}
}

func (p *pty) close() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed
	_ = p.master.Close()
}
