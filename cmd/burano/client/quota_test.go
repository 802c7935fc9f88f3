package client

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/web/client"
)

func TestLimitsOfQuotasAreReadAndShown(t *testing.T) {
	limits, err := readLimits([]string{"environments=10", "packages=unlimited", "templates=0"})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"environments": 10, "packages": -1, "templates": 0}, limits)
	for _, wrong := range []string{"environments", "environments=", "environments=-2", "environments=many"} {
		_, err := readLimits([]string{wrong})
		require.ErrorContains(t, err, "write RESOURCE=LIMIT")
	}
	var table bytes.Buffer
	writeQuotas(&table, client.Quotas{Quotas: map[string]client.Quota{"environments": {Limit: 10, Used: 3}, "sessions": {Limit: -1, Default: true}}})
	require.Equal(t, "RESOURCE\tUSED\tLIMIT\tSET BY\nenvironments\t3\t10\tan administrator\nsessions\t0\tunlimited\tthe server's settings\n", table.String())
}

func TestThePackagesThatComeWithBuranoFitAPageTwice(t *testing.T) {
	embedded, err := apps.Packages()
	require.NoError(t, err)
	require.LessOrEqual(t, 2*len(embedded), catalog.DefaultPage)
}
