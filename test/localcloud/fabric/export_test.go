package fabric

// AsNamespace lets tests open sockets and run programs inside the fabric's namespaces.
var AsNamespace = asNamespace

// GuardRules lets tests compare the firewall of a network.
var GuardRules = guardRules

// PlugName is the name of a port at the bridge.
var PlugName = plugName

// Ruleset lets tests compare the NAT rules of a router.
var Ruleset = ruleset
