// Package publicnet tells addresses of the open internet from those of this machine, its networks
// and its provider's internals (spec 11.3). A dialer checks the address that it connects to: so no
// name and no later change of what a name means leads inside.
package publicnet

import (
	"net/netip"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
)

// inside are ranges that are not public, in addition to those that netip knows. An IPv6 address in
// the last rows carries an IPv4 address, which a router on the way may send the packet to.
var inside = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("fec0::/10"), netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32"),
}

// Require returns CodeNoPermission for a host:port that is no address of the open internet, unless
// it lies in one of the allowed ranges. The host is an IP address, as a dialer's Control sees it.
func Require(address string, allowed ...netip.Prefix) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return regie.Errorf(regie.CodeNoPermission, "%q is not an address that can be checked",
			sanitize.Clip(address, 100))
	}
	ip := at.Addr().Unmap().WithZone("")
	for _, prefix := range allowed {
		if prefix.Contains(ip) {
			return nil
		}
	}
	private := !ip.IsGlobalUnicast() || ip.IsPrivate()
	for _, prefix := range inside {
		private = private || prefix.Contains(ip)
	}
	if private {
		return regie.Errorf(regie.CodeNoPermission,
			"%s is an address of this machine or of a private network: allow_private permits it", ip)
	}
	return nil
}
