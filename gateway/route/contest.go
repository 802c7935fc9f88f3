package route

import (
	"cmp"
	"slices"
)

// Loser is a route that did not get its gateway port, and the route that has it.
type Loser struct {
	Route  Route
	Holder Route
}

// Contest gives every gateway port to one route: the one of the older Service; of Services of the same second, the first by
// namespace and name; of ports of one Service, the first by name. The outcome does not depend on the order of routes.
// Winners come in the order of their gateway ports, losers in the order of their claims.
func Contest(routes []Route) (winners []Route, losers []Loser) {
	ordered := slices.Clone(routes)
	slices.SortStableFunc(ordered, older)
	holders := make(map[uint16]Route, len(ordered))
	winners = make([]Route, 0, len(ordered))
	for _, r := range ordered {
		holder, taken := holders[r.GatewayPort]
		if taken {
			losers = append(losers, Loser{Route: r, Holder: holder})
			continue
		}
		holders[r.GatewayPort] = r
		winners = append(winners, r)
	}
	slices.SortFunc(winners, func(a, b Route) int { return cmp.Compare(a.GatewayPort, b.GatewayPort) })
	return winners, losers
}

func older(a, b Route) int {
	return cmp.Or(
		a.Since.Compare(b.Since),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Service, b.Service),
		cmp.Compare(a.Port, b.Port),
	)
}
