package pki

import (
	"encoding/json"
	"fmt"
)

// Kubeconfig writes the access of one user to an API server. serverName is the name that the API server's certificate
// must bear, whatever address is dialled. The text is YAML (JSON is YAML) and the same for the same input.
func Kubeconfig(cluster, server, serverName, user string, authority []byte, pair Pair) ([]byte, error) {
	type object = map[string]any
	context := user + "@" + cluster
	text, err := json.MarshalIndent(object{
		"apiVersion": "v1",
		"kind":       "Config",
		"clusters": []object{{"name": cluster, "cluster": object{
			"server": server, "tls-server-name": serverName, "certificate-authority-data": authority,
		}}},
		"users": []object{{"name": user, "user": object{
			"client-certificate-data": pair.Certificate, "client-key-data": pair.Key,
		}}},
		"contexts":        []object{{"name": context, "context": object{"cluster": cluster, "user": user}}},
		"current-context": context,
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig of %s: %w", user, err)
	}
	return append(text, '\n'), nil
}
