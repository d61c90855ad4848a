package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/regie-run/regie"
)

// TestSystemDirectories: the machine's own directories are workspaces only for who means it.
func TestSystemDirectories(t *testing.T) {
	for dir, want := range map[string]bool{
		"/etc": true, "/etc/nginx": true, "/etcetera": false, "/usr": true, "/usr/local": true, "/usr/local/src/project": false, "/usr/src/linux": false,
		"/usr/lib/python3": true, "/var": true, "/var/lib": true, "/var/lib/jenkins/project": false, "/var/www": false, "/opt": true, "/opt/project": false,
		"/srv": true, "/srv/site": false, "/proc/1": true, "/sys/kernel": true, "/dev": true, "/dev/shm": true, "/dev/shm/project": false, "/tmp": true,
		"/tmp/project": false, "/home": true, "/home/somebody": false, "/root/project": false, "/run/media/somebody/disk": false, "/boot/efi": true,
		"/private/etc/ssh": true, "/private/var/folders/x": false, "/Users/somebody/project": false,
	} {
		if isSystem(dir) != want {
			t.Errorf("isSystem(%s) is %v", dir, !want)
		}
	}
	home := t.TempDir()
	if _, _, err := Detect("/etc", home, false); regie.CodeOf(err) != regie.CodePathProtected {
		t.Errorf("/etc is a workspace: %v", err)
	}
	if root, _, err := Detect("/etc", home, true); err != nil || root != "/etc" && root != "/private/etc" {
		t.Errorf("/etc for who means it: %s, %v", root, err)
	}
	link := filepath.Join(home, "link")
	if err := os.Symlink("/etc", link); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Detect(link, home, false); regie.CodeOf(err) != regie.CodePathProtected {
		t.Errorf("a link to /etc is a workspace: %v", err)
	}
}
