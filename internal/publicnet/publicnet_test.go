package publicnet

import (
	"net/netip"
	"testing"
)

func TestRequire(t *testing.T) {
	for address, want := range map[string]bool{
		"93.184.216.34:443": true, "[2606:2800:220:1::1]:443": true, "10.9.0.1:80": true,
		"127.0.0.1:80": false, "10.1.2.3:80": false, "172.16.0.1:80": false, "192.168.1.1:80": false,
		"169.254.169.254:80": false, "0.0.0.0:80": false, "100.64.1.1:80": false, "224.0.0.1:80": false,
		"255.255.255.255:80": false, "198.18.0.1:80": false, "[::1]:80": false, "[::]:80": false,
		"[fe80::1%eth0]:80": false, "[fc00::1]:80": false, "[::ffff:127.0.0.1]:80": false, "[::7f00:1]:80": false,
		"[64:ff9b::7f00:1]:80": false, "[2002:7f00:1::]:80": false, "[2001:0:1::]:80": false, "[ff02::1]:80": false,
		"[fec0::1]:80": false, "somewhere:80": false, "127.0.0.1": false,
	} {
		if err := Require(address, netip.MustParsePrefix("10.9.0.0/16")); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}
