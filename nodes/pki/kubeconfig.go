package pki

import (
	"encoding/json"
	"fmt"
)

// Way is a further address of an API server.
type Way struct{ Name, Server string }

// Kubeconfig writes the access of one user to an API server. serverName is the name that the API server's certificate
// must bear, whatever address is dialled. Each way is another address of the same API server, by a context of its own. The text is YAML (JSON is
// YAML) and the same for the same input.
func Kubeconfig(cluster, server, serverName, user string, authority []byte, pair Pair, ways ...Way) ([]byte, error) {
	type object = map[string]any
	context := user + "@" + cluster
	access := func(name, server string) object {
		return object{"name": name, "cluster": object{"server": server, "tls-server-name": serverName, "certificate-authority-data": authority}}
	}
	clusters := []object{access(cluster, server)}
	contexts := []object{{"name": context, "context": object{"cluster": cluster, "user": user}}}
	for _, way := range ways {
		clusters = append(clusters, access(cluster+"-"+way.Name, way.Server))
		contexts = append(contexts, object{"name": way.Name, "context": object{"cluster": cluster + "-" + way.Name, "user": user}})
	}
	text, err := json.MarshalIndent(object{
		"apiVersion": "v1",
		"kind":       "Config",
		"clusters":   clusters,
		"users": []object{{"name": user, "user": object{
			"client-certificate-data": pair.Certificate, "client-key-data": pair.Key,
		}}},
		"contexts":        contexts,
		"current-context": context,
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig of %s: %w", user, err)
	}
	return append(text, '\n'), nil
}
