package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/flannel-io/flannel/pkg/lease"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

func TestTheInterfaceIsFoundByItsAddress(t *testing.T) {
	found, err := interfaceOf("127.0.0.1")
	require.NoError(t, err)
	require.Equal(t, "lo", found.IfaceName)
	require.Equal(t, "127.0.0.1", found.ExtAddr.String())

	_, err = interfaceOf("192.0.2.1")
	require.EqualError(t, err, "no interface has the address 192.0.2.1")
	for _, wrong := range []string{"", "eth0", "::1"} {
		_, err = interfaceOf(wrong)
		require.ErrorContains(t, err, "which is no IPv4 address")
	}
}

func TestTheSubnetOfTheLastRunIsTakenUpAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "subnet.env")
	subnet, err := previousSubnet(file)
	require.NoError(t, err, "the first run has no file")
	require.True(t, subnet.Empty())

	require.NoError(t, os.WriteFile(file, []byte("FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.7.1/24\nFLANNEL_MTU=1450\n"), 0o600))
	subnet, err = previousSubnet(file)
	require.NoError(t, err)
	require.Equal(t, "10.244.7.0/24", subnet.String())

	for content, problem := range map[string]string{
		"":                            "has no FLANNEL_SUBNET",
		"FLANNEL_SUBNET=10.244.7.1\n": "which is no IPv4 network",
		"FLANNEL_SUBNET=fd00::1/64\n": "which is no IPv4 network",
	} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		_, err = previousSubnet(file)
		require.ErrorContains(t, err, problem)
	}
}

func TestLeasesAreRead(t *testing.T) {
	entry := func(key, value string) *mvccpb.KeyValue {
		return &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value)}
	}
	const key = "/coreos.com/network/subnets/10.244.7.0-24"

	found, ok := parse(entry(key, `{"PublicIP":"10.0.0.11","BackendType":"vxlan","BackendData":{"VNI":1}}`))
	require.True(t, ok)
	require.Equal(t, "10.244.7.0/24", found.Subnet.String())
	require.Equal(t, "10.0.0.11", found.Attrs.PublicIP.String())

	found, ok = parse(entry(key, ""))
	require.True(t, ok, "a removed lease has no value")
	require.Equal(t, "10.244.7.0/24", found.Subnet.String())
	for _, strange := range []*mvccpb.KeyValue{entry(key, "{"), entry("/coreos.com/network/subnets/x", "{}")} {
		_, ok = parse(strange)
		require.False(t, ok)
	}
}

func TestALostLeaseEndsTheProgramAndOneThatIsAskedToEndHasNoError(t *testing.T) {
	m := &manager{lost: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	own := &lease.Lease{Expiration: time.Now().Add(24 * time.Hour)}
	require.NoError(t, m.keep(ctx, own))
	close(m.lost)
	require.ErrorIs(t, m.keep(t.Context(), own), errLost)
}
