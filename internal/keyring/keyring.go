package keyring

import (
	"errors"
	"os"
	"regexp"
	"runtime"
	"time"

	system "github.com/zalando/go-keyring"

	"github.com/regie-run/regie"
)

const (
	// service is what our keys stand under.
	service = "regie"
	// knock bounds the check for a keyring; patience bounds a request for a key, because a person
	// may have to unlock the keyring.
	knock    = 700 * time.Millisecond
	patience = 5 * time.Second
)

var name = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)

// Named reports whether a word is a valid key name: small letters, digits, - and _, at most 40.
func Named(word string) bool { return name.MatchString(word) }

// Answers reports whether there is a keyring that keys can be kept in. It takes 700 ms at most.
func Answers() bool {
	_, err := within(knock, func() (string, error) { return system.Get(service, "-") })
	return err == nil || errors.Is(err, system.ErrNotFound)
}

// Get reads a key. It returns CodeNotFound if the keyring has none of that name, CodeTimeout after
// 5 s, and CodeNoPermission if the keyring is unreachable or refuses.
func Get(name string) (string, error) {
	key, err := within(patience, func() (string, error) { return system.Get(service, name) })
	return key, explain(err, name)
}

// Set keeps a key. Its errors are those of Get.
func Set(name, key string) error {
	_, err := within(patience, func() (string, error) { return "", system.Set(service, name, key) })
	return explain(err, name)
}

var (
	errSlow  = errors.New("no answer in time")
	errNoBus = errors.New("DBUS_SESSION_BUS_ADDRESS is not set")
)

// within calls ask and waits for at most the given time. It returns errNoBus without the address of
// a session bus: the library would start its own bus, which has no keyring.
func within(most time.Duration, ask func() (string, error)) (string, error) {
	if runtime.GOOS != "darwin" && runtime.GOOS != "windows" {
		if address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); address == "" || address == "autolaunch:" {
			return "", errNoBus
		}
	}
	type answer struct {
		key string
		err error
	}
	done := make(chan answer, 1)
	go func() {
		key, err := ask()
		done <- answer{key, err}
	}()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case a := <-done:
		return a.key, a.err
	case <-timer.C:
		return "", errSlow
	}
}

func explain(err error, name string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, system.ErrNotFound):
		return regie.Errorf(regie.CodeNotFound, "the keyring has no key %s", name)
	case errors.Is(err, errSlow):
		return regie.Errorf(regie.CodeTimeout, "the keyring did not answer within %s: it may be locked",
			patience.String())
	default:
		return regie.Errorf(regie.CodeNoPermission, "the keyring cannot be used: %s", err.Error())
	}
}
