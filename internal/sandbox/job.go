package sandbox

import "github.com/regie-run/regie"

// job is the helper's order: one line of JSON over a pipe.
type job struct {
	Argv    []string `json:"argv"`
	Dir     string   `json:"dir"`
	Env     []string `json:"env"`
	Tier    Tier     `json:"tier"`
	Network bool     `json:"network"`
	Rules   []rule   `json:"rules,omitempty"` // of Landlock; none where the kernel has none
	// UID and GID are those of the workspace's owner, if the helper is root and the owner is not.
	// If both are root, Namespace runs the command in a user namespace without root.
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
	// Git is the user's identity for git; it is written into the command's own home.
	Git string `json:"git,omitempty"`
	// Temp is a directory that the helper removes with the command: its starter may be killed
	// first.
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

// The names under which this program starts itself as a helper (argv[0]): no file and no argument
// sets them.
const (
	watchName = "regie-sandbox-watch"
	enterName = "regie-sandbox-enter"
	probeName = "regie-sandbox-probe"
)
