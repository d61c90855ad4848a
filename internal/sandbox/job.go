package sandbox

import "github.com/regie-run/regie"

// job is what a helper is told to do, by a pipe, as one line of JSON.
type job struct {
	Argv    []string `json:"argv"`
	Dir     string   `json:"dir"`
	Env     []string `json:"env"`
	Tier    Tier     `json:"tier"`
	Network bool     `json:"network"`
	Rules   []rule   `json:"rules,omitempty"` // of Landlock; none where the kernel has none
	// UID and GID are those of the workspace's owner where the helper is root and the owner is not;
	// Namespace has the command run in a user namespace in which it is not root, where both are.
	UID       int    `json:"uid,omitempty"`
	GID       int    `json:"gid,omitempty"`
	Namespace bool   `json:"namespace,omitempty"`
	Probe     string `json:"probe,omitempty"` // what a probe tries; it is then what is run
	// Until is when the command may begin at the latest, by the clock that counts from the
	// machine's start, in nanoseconds; zero: at any time.
	Until int64 `json:"until,omitempty"`
	// Processes and Memory, in bytes, bound the command with everything that it starts.
	Processes int   `json:"processes"`
	Memory    int64 `json:"memory"`
	// Git is the user's identity for git, which lies in the command's own home.
	Git string `json:"git,omitempty"`
	// Temp is a directory that goes with the command: whoever started the helper may be killed
	// before.
	Temp string `json:"temp,omitempty"`
}

// rule lets a command into a path.
type rule struct {
	Path   string `json:"path"`
	Access access `json:"access"`
}

type access string

const (
	accessRead   access = "read"   // and run
	accessWrite  access = "write"  // and all else
	accessList   access = "list"   // names in a directory, and nothing of what they name
	accessDevice access = "device" // a device's file
)

// report is what watch says, line by line: that it begins, and how the command ended.
type report struct {
	Started bool   `json:"started,omitempty"`
	Done    bool   `json:"done,omitempty"`
	Exit    int    `json:"exit,omitempty"`
	Signal  int    `json:"signal,omitempty"`
	Left    int    `json:"left,omitempty"`
	Refused string `json:"refused,omitempty"`  // the command was never run, and why
	NoEntry bool   `json:"no_entry,omitempty"` // because there is no such program
	Late    bool   `json:"late,omitempty"`     // because it was too late to begin
	// Exceeded is the code of the bound that the command was ended at.
	Exceeded regie.Code `json:"exceeded,omitempty"`
}

// The names under which this program starts itself as a helper: what it is called, which no file
// and no argument decides.
const (
	watchName = "regie-sandbox-watch"
	enterName = "regie-sandbox-enter"
	probeName = "regie-sandbox-probe"
)
