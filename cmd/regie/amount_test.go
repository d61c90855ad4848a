package main

import (
	"testing"

	"github.com/regie-run/regie/internal/text"
)

func TestAmount(t *testing.T) {
	for bytes, want := range map[int64][2]string{
		12: {"12 B", "12 o"}, 14131: {"13.8 KiB", "13,8 Kio"}, 5 << 20: {"5.0 MiB", "5,0 Mio"}, 3 << 40: {"3072.0 GiB", "3072,0 Gio"},
	} {
		if got := [2]string{amount(text.New("en"), bytes), amount(text.New("fr"), bytes)}; got != want {
			t.Errorf("%d: got %q, want %q", bytes, got, want)
		}
	}
}
