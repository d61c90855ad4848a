package regie

import "testing"

// TestDollars writes amounts exactly.
func TestDollars(t *testing.T) {
	for amount, want := range map[int64]string{0: "0.00", 1: "0.000001", 10_000: "0.01", 4200: "0.0042", 1_000_000: "1.00", 12_345_678: "12.345678", 1_500_000: "1.50", -30_000: "-0.03"} {
		if got := Dollars(amount); got != want {
			t.Errorf("%d is written %q, want %q", amount, got, want)
		}
	}
}

// TestCaps takes the lower cap of each, where either is set.
func TestCaps(t *testing.T) {
	app, agent := Caps{Round: 5, Session: 9, Day: 100}, Caps{Round: 7, Session: 3, Workspace: 50}
	want := Caps{Round: 5, Session: 3, Workspace: 50, Day: 100}
	if got := app.Lower(agent); got != want || agent.Lower(app) != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if !(Caps{}).IsZero() || app.IsZero() || app.Lower(Caps{}) != app {
		t.Error("no cap lowers nothing")
	}
}

// TestBooked: a call of unknown cost is booked with what was reserved for it.
func TestBooked(t *testing.T) {
	if booked := (Money{Reserved: 9, Cost: 4, Known: true}).Booked(); booked != 4 {
		t.Errorf("booked %d", booked)
	}
	if booked := (Money{Reserved: 9, Cost: 4}).Booked(); booked != 9 {
		t.Errorf("booked %d", booked)
	}
}
