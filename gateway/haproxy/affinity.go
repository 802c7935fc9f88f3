package haproxy

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"strings"
	"time"

	"github.com/haproxytech/client-native/v6/models"
)

// A listener with affinity remembers the server of each client (https://docs.haproxy.org/2.6/configuration.html#4.2-stick-table). An unknown client gets
// its server by its address, on a consistent hash of the servers' ids, which follow from their addresses: so all gateways choose the same one, and a
// reload, which forgets clients, moves hardly any of them.

// affine has a backend keep clients on their servers.
func affine(backend *models.Backend, affinity time.Duration) {
	method, algorithm := models.HashTypeMethodConsistent, models.BalanceAlgorithmSource
	backend.Balance = &models.Balance{Algorithm: &algorithm}
	backend.HashType = &models.HashType{Method: method, Function: models.HashTypeFunctionSdbm, Modifier: models.HashTypeModifierAvalanche}
	size, expire := int64(clientsKept), affinity.Milliseconds()
	backend.StickTable = &models.ConfigStickTable{Type: models.ConfigStickTableTypeIPV6, Size: &size, Expire: &expire} // addresses of IPv4 are such of IPv6, too
}

// stick has a backend remember where clients are.
func (f *file) stick(backend, id string) error {
	return f.client.CreateStickRule(0, backend, &models.StickRule{Type: models.StickRuleTypeOn, Pattern: "src"}, id, 0)
}

// serverID begins the word by which a server with affinity has its place among the others.
const serverID = " id "

// identified is the word for each server of a section with affinity.
func identified(servers []server) map[netip.AddrPort]string {
	words, taken := make(map[netip.AddrPort]string, len(servers)), make(map[uint32]bool, len(servers))
	for _, s := range servers {
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(s.Address.String()))
		id := sum.Sum32() & (1<<31 - 1)
		for id == 0 || taken[id] {
			id = (id + 1) & (1<<31 - 1)
		}
		taken[id] = true
		words[s.Address] = fmt.Sprint(serverID, id)
	}
	return words
}

// isIdentified reports whether a line of a server has such a word.
func isIdentified(line string) bool { return strings.Contains(line, serverID) }
