package nova

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzAHostNameIsOneWhateverTheServerIsCalled(f *testing.F) {
	for _, name := range []string{"murano-kube-1", "Murano Kube_1", "", "...", "-a-", "ä", "a..b", string(make([]byte, 300))} {
		f.Add(name)
	}
	valid := regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)
	f.Fuzz(func(t *testing.T, name string) { require.Regexp(t, valid, hostname(name)) })
}
