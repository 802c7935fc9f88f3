package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"

	"github.com/burano/burano/test/timeline"
)

// lab is a local cloud with the node image in it and a Burano server beside it, both of build/.
type lab struct {
	folder  string
	address string
	group   string // the control group of the cloud's servers
	server  *exec.Cmd
}

// openLab starts the lab. close removes everything, also after an error.
func openLab(ctx context.Context, image string) (*lab, error) {
	folder, err := filepath.Abs("build/bench")
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &lab{folder: folder, address: listener.Addr().String()}
	if err := listener.Close(); err != nil {
		return nil, err
	}
	l.group = "burano-localcloud"
	up := []string{"up", "--state", filepath.Join(folder, "cloud")}
	if slot := os.Getenv("BURANO_SLOT"); slot != "" { // as in test/e2e: several checkouts at the same time
		l.group += "-b" + slot + "-"
		up = append(up, "--prefix", "b"+slot+"-", "--listen", "127.0.0.1:506"+slot, "--external-cidr", "10.89."+slot+".0/24")
	}
	if err := l.run(ctx, "", "localcloud", up...); err != nil {
		return l, err
	}
	if err := l.run(ctx, "burano-admin", "burano", "image", "upload", "--name", "burano-node", "--public", image); err != nil {
		return l, err
	}
	log, err := os.Create(filepath.Join(folder, "server.log"))
	if err != nil {
		return l, err
	}
	defer log.Close()
	l.server = l.command(ctx, "burano-service", "burano", "serve", "--listen", l.address, "--state", filepath.Join(folder, "server"))
	l.server.Stdout, l.server.Stderr = log, log
	if err := l.server.Start(); err != nil {
		return l, err
	}
	if err := l.healthy(ctx); err != nil {
		return l, err
	}
	return l, l.run(ctx, "burano-demo", "burano", "package", "import", "test/packages/io.burano.demo.Hello")
}

func (l *lab) close() error {
	var err error
	if l.server != nil && l.server.Process != nil {
		err = errors.Join(l.server.Process.Signal(syscall.SIGTERM), l.server.Wait())
	}
	err = errors.Join(err, l.run(context.Background(), "", "localcloud", "down", "--state", filepath.Join(l.folder, "cloud")))
	if err != nil {
		return err
	}
	return os.RemoveAll(l.folder)
}

func (l *lab) clouds() string { return filepath.Join(l.folder, "cloud", "clouds.yaml") }

// command is one of our programs, run as an entry of the local cloud's clouds.yaml.
func (l *lab) command(ctx context.Context, cloud, program string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join("build", program), args...)
	command.Env = append(os.Environ(), "OS_CLIENT_CONFIG_FILE="+l.clouds(), "OS_CLOUD="+cloud, "BURANO_URL=http://"+l.address)
	return command
}

func (l *lab) run(ctx context.Context, cloud, program string, args ...string) error {
	if output, err := l.command(ctx, cloud, program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, output)
	}
	return nil
}

func (l *lab) healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		response, err := http.Get("http://" + l.address + "/readyz")
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", errors.Join(err, ctx.Err()))
		case <-ticker.C:
		}
	}
}

// get asks Burano's API as the demonstration's user.
func (l *lab) get(ctx context.Context, path string, answer any) error {
	options, _, _, err := clouds.Parse(clouds.WithCloudName("burano-demo"), clouds.WithLocations(l.clouds()))
	if err != nil {
		return err
	}
	provider, err := config.NewProviderClient(ctx, options)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.address+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("X-Auth-Token", provider.Token())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %s", path, response.Status, body)
	}
	return json.Unmarshal(body, answer)
}

// environment is the API's view of the bench's environment.
type environment struct {
	ID, Name, Status string
	Services         []struct {
		Endpoints []struct {
			Address string
			Port    int
			Scope   string
		} `json:"applicationEndpoints"`
	}
}

func (l *lab) environment(ctx context.Context) (environment, error) {
	var list struct{ Environments []environment }
	var found environment
	if err := l.get(ctx, "/v1/environments", &list); err != nil {
		return found, err
	}
	at := slices.IndexFunc(list.Environments, func(one environment) bool { return one.Name == environmentName })
	if at < 0 {
		return found, fmt.Errorf("there is no environment %s", environmentName)
	}
	return found, l.get(ctx, "/v1/environments/"+list.Environments[at].ID, &found)
}

// lastSteps returns the native steps of the environment's last deployment or action.
func (l *lab) lastSteps(ctx context.Context) ([]timeline.Step, error) {
	found, err := l.environment(ctx)
	if err != nil {
		return nil, err
	}
	if found.Status != "ready" {
		return nil, fmt.Errorf("the environment is %s", found.Status)
	}
	var list struct{ Deployments []struct{ ID string } }
	if err := l.get(ctx, "/v1/environments/"+found.ID+"/deployments", &list); err != nil {
		return nil, err
	}
	var answer struct{ Steps []timeline.Step }
	return answer.Steps, l.get(ctx, "/burano/v1/deployments/"+list.Deployments[0].ID+"/steps", &answer)
}

// everyGatewayAnswers asks the application once through each gateway.
func (l *lab) everyGatewayAnswers(ctx context.Context, gateways int) error {
	found, err := l.environment(ctx)
	if err != nil {
		return err
	}
	asked := map[string]bool{}
	client := http.Client{Timeout: 10 * time.Second}
	for _, service := range found.Services {
		for _, endpoint := range service.Endpoints {
			if endpoint.Scope != "public" || asked[endpoint.Address] {
				continue
			}
			response, err := client.Get(fmt.Sprintf("http://%s:%d/", endpoint.Address, endpoint.Port))
			if err != nil {
				return err
			}
			response.Body.Close()
			if response.StatusCode != http.StatusOK {
				return fmt.Errorf("gateway %s answers %s", endpoint.Address, response.Status)
			}
			asked[endpoint.Address] = true
		}
	}
	if len(asked) != gateways {
		return fmt.Errorf("the application names %d gateways, %d were expected", len(asked), gateways)
	}
	return nil
}

// processorTime is the processor time of the cloud's servers, including deleted ones, and of the Burano server. Unlike wall-clock
// time it does not depend on other load of the machine.
func (l *lab) processorTime() (time.Duration, error) {
	servers, err := l.serversTime()
	if err != nil {
		return 0, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", l.server.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may hold spaces; the text after the last one begins with field 3 (proc(5)). Ticks are of 10
	// ms.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, field := range fields[11:13] {
		ticks, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		servers += time.Duration(ticks) * 10 * time.Millisecond
	}
	return servers, nil
}

// serversTime reads the accounts of the control group, of version 1 or 2.
func (l *lab) serversTime() (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join("/sys/fs/cgroup/cpuacct", l.group, "cpuacct.usage"))
	if err == nil {
		used, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		return time.Duration(used), err
	}
	text, err = os.ReadFile(filepath.Join("/sys/fs/cgroup", l.group, "cpu.stat"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // there was no server yet
	}
	if err != nil {
		return 0, err
	}
	var used int64
	if _, err := fmt.Sscanf(string(text), "usage_usec %d", &used); err != nil {
		return 0, fmt.Errorf("read cpu.stat: %w", err)
	}
	return time.Duration(used) * time.Microsecond, nil
}
