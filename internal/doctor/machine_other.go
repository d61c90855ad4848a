//go:build !linux

package doctor

import (
	"context"
	"syscall"
)

func landlock() (int, error) { return 0, syscall.ENOSYS }

func seccomp() error { return syscall.ENOSYS }

func userNamespaces(context.Context) error { return syscall.ENOSYS }
