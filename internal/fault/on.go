//go:build faults

package fault

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

var armed struct {
	once sync.Once
	mu   sync.Mutex
	name string
	left int
}

// Point kills the process with SIGKILL at the n-th time that it passes the point, where REGIE_FAULT
// is "name:n".
func Point(name string) {
	armed.once.Do(func() {
		point, count, _ := strings.Cut(os.Getenv("REGIE_FAULT"), ":")
		armed.name = point
		armed.left, _ = strconv.Atoi(count)
	})
	if armed.name != name {
		return
	}
	armed.mu.Lock()
	defer armed.mu.Unlock()
	if armed.left--; armed.left <= 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way; nothing more may happen here
	}
}

// Bug reports whether REGIE_BUG asks for this seeded bug.
func Bug(name string) bool { return os.Getenv("REGIE_BUG") == name }
