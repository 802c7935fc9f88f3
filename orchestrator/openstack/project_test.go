package openstack

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAFreeNetworkOverlapsNothingTaken(t *testing.T) {
	within := netip.MustParsePrefix("10.20.0.0/16")
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.IntRange(18, 26).Draw(t, "bits")
		taken := rapid.SliceOf(rapid.Custom(func(t *rapid.T) netip.Prefix {
			address := netip.AddrFrom4([4]byte{10, byte(rapid.IntRange(19, 21).Draw(t, "b")), rapid.Byte().Draw(t, "c"), 0})
			return netip.PrefixFrom(address, rapid.IntRange(17, 28).Draw(t, "length")).Masked()
		})).Draw(t, "taken")
		free, ok := firstFree(within, bits, taken)
		if !ok {
			return
		}
		require.Equal(t, free, free.Masked())
		require.True(t, within.Contains(free.Addr()))
		for _, prefix := range taken {
			require.False(t, prefix.Overlaps(free), "%s overlaps %s", prefix, free)
		}
	})
}

func TestNoFreeNetworkIsLeftWhenEverythingIsTaken(t *testing.T) {
	within := netip.MustParsePrefix("10.20.0.0/16")
	_, ok := firstFree(within, 24, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	require.False(t, ok)
	last, ok := firstFree(within, 24, []netip.Prefix{netip.MustParsePrefix("10.20.0.0/17"), netip.MustParsePrefix("10.20.128.0/18"),
		netip.MustParsePrefix("10.20.192.0/19"), netip.MustParsePrefix("10.20.224.0/20"), netip.MustParsePrefix("10.20.240.0/21"),
		netip.MustParsePrefix("10.20.248.0/22"), netip.MustParsePrefix("10.20.252.0/23"), netip.MustParsePrefix("10.20.254.0/24")})
	require.True(t, ok)
	require.Equal(t, netip.MustParsePrefix("10.20.255.0/24"), last)
	_, ok = firstFree(netip.MustParsePrefix("255.255.255.0/24"), 24, []netip.Prefix{netip.MustParsePrefix("255.255.255.0/24")})
	require.False(t, ok, "the search ends at the last address there is")
}
