package apps_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/scenario"
)

// registered has a service of OpenStack with a database and a Keystone, whose containers trace the commands that they are to run.
var registered = fstest.MapFS{
	"manifest.yaml": {Data: []byte(`
Format: '1.4'
Type: Library
FullName: test.registered
Name: registered
Require: {com.mirantis.docker.Interfaces: , io.burano.Keystone: 1, io.burano.MariaDB: 1, io.burano.openstack: 1}
Classes: {test.Pod: Pod.yaml, test.Service: Service.yaml, test.Keystone: Keystone.yaml, test.MariaDB: MariaDB.yaml}
`)},
	"Classes/Pod.yaml": {Data: []byte(`
Namespaces: {=: test, docker: com.mirantis.docker}
Name: Pod
Extends: docker:DockerContainerHost
Methods:
  deploy:
    Body:
      - trace('the pods roll')
`)},
	"Classes/Service.yaml": {Data: []byte(`
Namespaces: {=: test, docker: com.mirantis.docker, os: io.burano.openstack}
Name: Service
Extends: os:RegisteredService
Methods:
  getServiceName: {Body: [{Return: placement}]}
  getType: {Body: [{Return: placement}]}
  getPath: {Body: [{Return: /placement}]}
  getRoles: {Body: [{Return: [service, reader]}]}
  getDatabases: {Body: [{Return: {placement: database, inventory: store_database, cells: ''}}]}
  getTokenSections: {Body: [{Return: [keystone_authtoken, neutron]}]}
  getConnectionTo:
    Arguments:
      - application: {Contract: $}
      - port: {Contract: $}
    Body:
      - Return: dict(host => $application.name, port => $port)
`)},
	"Classes/Keystone.yaml": {Data: []byte(`
Namespaces: {=: test, apps: io.burano}
Name: Keystone
Extends: apps:Keystone
Properties:
  runs: {Contract: $.bool(), Default: true}
Methods:
  runInContainer:
    Arguments:
      - command: {Contract: $}
    Body:
      - trace($command.skip(4).join(' '))
      - Return: switch($.runs => [''], true => [])
`)},
	"Classes/MariaDB.yaml": {Data: []byte(`
Namespaces: {=: test, apps: io.burano}
Name: MariaDB
Extends: apps:MariaDB
Methods:
  makeDatabase:
    Arguments:
      - database: {Contract: $}
      - user: {Contract: $}
      - password: {Contract: $}
    Body:
      - trace('database ' + $database + ' of ' + $user)
  dropUser:
    Arguments:
      - user: {Contract: $}
    Body:
      - trace('no ' + $user)
`)},
}

// served returns an environment with a Keystone, and the service with an id if it is not empty.
func served(id, region string, keystone map[string]any) map[string]any {
	object := func(class, id string, properties map[string]any) map[string]any {
		made := map[string]any{"?": map[string]any{"type": class, "id": id}, "name": id}
		maps.Copy(made, properties)
		return made
	}
	globals := object("io.burano.openstack.Globals", "globals", map[string]any{"region": region})
	delete(globals, "name")
	identity := object("test.Keystone", "identity", map[string]any{"host": "host", "database": "store", "globals": "globals"})
	maps.Copy(identity, keystone)
	applications := []any{object("test.Pod", "host", nil), object("test.MariaDB", "store", map[string]any{"host": "host"}), identity}
	identity["globals"] = globals
	if id != "" {
		applications = append(applications, object("test.Service", id, map[string]any{"host": "host", "database": "store", "identity": "identity", "globals": "globals", "port": 8778, "image": "placement"}))
	}
	return object("io.murano.Environment", "environment", map[string]any{"applications": applications})
}

// outcome is the result of a step of a scenario.
type outcome struct {
	Result    any
	Exception map[string]any
	Traces    []string
}

// acted runs steps of a scenario, and returns the outcome of each.
func acted(t *testing.T, steps ...map[string]any) (outcomes []outcome) {
	t.Helper()
	extra, err := catalog.ReadFolder(registered)
	require.NoError(t, err)
	var written strings.Builder
	for _, step := range steps {
		require.NoError(t, json.NewEncoder(&written).Encode(step))
	}
	var out bytes.Buffer
	require.NoError(t, scenario.Run(t.Context(), catalog.Shelf(append(embedded(t), extra)), strings.NewReader(written.String()), &out))
	decoder := json.NewDecoder(&out)
	for range steps {
		var one outcome
		require.NoError(t, decoder.Decode(&one))
		outcomes = append(outcomes, one)
	}
	return outcomes
}

func on(id, method string, arguments map[string]any) map[string]any {
	return map[string]any{"call": method, "on": id, "kwargs": arguments}
}

func TestAServiceLogsInAtKeystoneWithAPasswordThatNoFileHas(t *testing.T) {
	outcomes := acted(t, map[string]any{"load": served("service", "Here", nil)}, on("service", "getTokenSettings", nil), on("service", "getConnections", nil), on("service", "getCheck", nil))
	require.Nil(t, outcomes[0].Exception)
	require.Equal(t, map[string]any{"auth_type": "password", "auth_url": "http://identity:5000/v3", "www_authenticate_uri": "http://identity:5000/v3", "username": "placement_1",
		"user_domain_id": "default", "project_name": "service", "project_domain_id": "default", "region_name": "Here", "service_token_roles": "service",
		"service_token_roles_required": true}, outcomes[1].Result)
	connections, _ := outcomes[2].Result.(map[string]any)
	require.Regexp(t, `^[a-z2-7]{42}$`, connections["OS_KEYSTONE_AUTHTOKEN__PASSWORD"])
	require.Equal(t, connections["OS_KEYSTONE_AUTHTOKEN__PASSWORD"], connections["OS_NEUTRON__PASSWORD"])
	require.Regexp(t, `^mysql\+pymysql://placement_1:[a-z2-7]{42}@store:3306/placement\?charset=utf8$`, connections["OS_DATABASE__CONNECTION"])
	require.Regexp(t, `/inventory\?charset=utf8$`, connections["OS_STORE_DATABASE__CONNECTION"])
	require.Len(t, connections, 4, "no option has the connection of the third database")
	require.Equal(t, map[string]any{"IDENTITY_URL": "http://identity:5000/v3", "SERVICE_USER": "placement_1", "SERVICE_URL": "http://host-service:8778/placement"},
		outcomes[3].Result.(map[string]any)["env"])
}

func TestAServiceIsInTheCatalogOfServices(t *testing.T) {
	login := map[string]any{"turn": 1, "password": strings.Repeat("a", 42)}
	outcomes := acted(t, map[string]any{"load": served("service", "Here", nil)},
		on("service", "makeUser", map[string]any{"kind": "serviceLogin", "login": login}),
		on("service", "afterDeploy", nil),
		map[string]any{"load": map[string]any{"Objects": served("service", "There", nil), "Attributes": []any{[]any{"service", "io.burano.openstack.RegisteredService", "region", "Here"}}}},
		on("service", "afterDeploy", nil))
	require.Equal(t, []string{"user placement_1 " + strings.Repeat("a", 42) + " service reader"}, outcomes[1].Traces)
	require.Equal(t, []string{"service placement placement Here  http://host-service:8778/placement "}, outcomes[2].Traces, "it is not published yet")
	require.Equal(t, []string{"service placement placement There Here http://host-service:8778/placement "}, outcomes[4].Traces)

	outcomes = acted(t, map[string]any{"load": served("service", "Here", map[string]any{"runs": false})}, on("service", "afterDeploy", nil))
	require.Equal(t, "No pod of identity runs, so deploy it first", outcomes[1].Exception["message"])
}

func TestUsersOfAServiceTakeTurns(t *testing.T) {
	outcomes := acted(t, map[string]any{"load": served("service", "Here", nil)}, on("service", "rotateServicePassword", nil), on("service", "getTokenSettings", nil),
		on("service", "rotateServicePassword", nil), on("service", "rotateDatabasePassword", nil))
	require.Len(t, outcomes[1].Traces, 3)
	require.Regexp(t, `^user placement_2 [a-z2-7]{42} service reader$`, outcomes[1].Traces[0])
	require.Equal(t, []string{"the pods roll", "no-user placement_1"}, outcomes[1].Traces[1:])
	require.Equal(t, "placement_2", outcomes[2].Result.(map[string]any)["username"])
	require.Regexp(t, `^user placement_1 [a-z2-7]{42} service reader$`, outcomes[3].Traces[0])
	require.Equal(t, "no-user placement_2", outcomes[3].Traces[2])
	require.Equal(t, []string{"database placement of placement_2", "database inventory of placement_2", "database cells of placement_2", "the pods roll", "no placement_1"}, outcomes[4].Traces,
		"users of the database are none of Keystone's")
}

func TestARemovedServiceLeavesTheCatalogOfServices(t *testing.T) {
	outcomes := acted(t, map[string]any{"load": map[string]any{"Objects": served("", "Here", nil), "ObjectsCopy": served("service", "Here", nil)}})
	require.Equal(t, []string{"no-service placement placement Here", "no-user placement_1", "no-user placement_2"}, outcomes[0].Traces)
}
