package pki

import (
	"encoding/json"
	"fmt"
)

// Way is a further address of an API server.
type Way struct{ Name, Server string }

// Kubeconfig writes the access of one user with a certificate. See UserKubeconfig.
func Kubeconfig(cluster, server, serverName, user string, authority []byte, pair Pair, ways ...Way) ([]byte, error) {
	return UserKubeconfig(cluster, server, serverName, "", authority, User{Name: user, Pair: pair}, ways...)
}

// User is whose access a kubeconfig is.
type User struct {
	Name string
	Pair Pair // certificate and key; none where Command is
	// Command is a program with its arguments that gets certificate and key each time (an exec plugin of client-go), and Hint is the message when the
	// program is missing.
	Command []string
	Hint    string
}

// execVersion is the version of such a program's output: https://kubernetes.io/docs/reference/config-api/client-authentication.v1/.
const execVersion = "client.authentication.k8s.io/v1"

// UserKubeconfig writes the access of one user to an API server, in a namespace where one is named. The API server's certificate must have the name
// serverName, whatever address is dialled. Each of ways is another address of the same API server, with a context of its own. The text is YAML (JSON is
// YAML) and the same for the same input.
func UserKubeconfig(cluster, server, serverName, namespace string, authority []byte, whose User, ways ...Way) ([]byte, error) {
	user := whose.Name
	type object = map[string]any
	context := user + "@" + cluster
	access := func(name, server string) object {
		return object{"name": name, "cluster": object{"server": server, "tls-server-name": serverName, "certificate-authority-data": authority}}
	}
	in := func(cluster string) object {
		made := object{"cluster": cluster, "user": user}
		if namespace != "" {
			made["namespace"] = namespace
		}
		return made
	}
	clusters := []object{access(cluster, server)}
	contexts := []object{{"name": context, "context": in(cluster)}}
	for _, way := range ways {
		clusters = append(clusters, access(cluster+"-"+way.Name, way.Server))
		contexts = append(contexts, object{"name": way.Name, "context": in(cluster + "-" + way.Name)})
	}
	proof := object{"client-certificate-data": whose.Pair.Certificate, "client-key-data": whose.Pair.Key}
	if len(whose.Command) > 0 {
		proof = object{"exec": object{"apiVersion": execVersion, "command": whose.Command[0], "args": whose.Command[1:], "interactiveMode": "Never", "installHint": whose.Hint}}
	}
	text, err := json.MarshalIndent(object{
		"apiVersion":      "v1",
		"kind":            "Config",
		"clusters":        clusters,
		"users":           []object{{"name": user, "user": proof}},
		"contexts":        contexts,
		"current-context": context,
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig of %s: %w", user, err)
	}
	return append(text, '\n'), nil
}
