package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/test/localcloud"
)

// startLimit is for a start after a reboot too, when images may have to be unpacked again.
const startLimit = 3 * time.Minute

func upCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "Start the cloud in the background, and say how to use it",
		Long: "up checks that this machine has what is needed, starts the cloud in the background, waits until it answers and writes a " +
			"clouds.yaml. If it is running already nothing changes.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := o.config()
			if err != nil {
				return err
			}
			out := command.OutOrStdout()
			pid, alive, err := serving(config.StateDir)
			if err != nil {
				return err
			}
			if alive {
				if !answers(command.Context(), config) {
					return fmt.Errorf("process %d is the cloud of %s, but nothing answers at %s: if it was started with another --listen "+
						"give that; otherwise look into %s", pid, config.StateDir, config.Listen, logPath(config))
				}
				fmt.Fprintf(out, "The local cloud is up already (process %d).\n", pid)
			} else {
				if err := start(command.Context(), o, config); err != nil {
					return err
				}
				fmt.Fprintln(out, "The local cloud is up.")
			}
			clouds, err := localcloud.WriteClouds(config)
			if err != nil {
				return err
			}
			explain(out, config, clouds)
			return nil
		},
	}
}

func logPath(config localcloud.Config) string {
	return filepath.Join(config.StateDir, "localcloud.log")
}

// start runs "serve" as a process of its own and waits until it answers.
func start(ctx context.Context, o *options, config localcloud.Config) error {
	if problems := localcloud.Check(config); len(problems) > 0 {
		var text strings.Builder
		for _, p := range problems {
			fmt.Fprintf(&text, "\n  - %s", p)
		}
		return fmt.Errorf("the local cloud cannot run here:%s", text.String())
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, begin, err := openLog(config)
	if err != nil {
		return err
	}
	defer log.Close()
	child := exec.Command(self, "serve", "--state", config.StateDir, "--listen", config.Listen, "--external-cidr", o.external, "--external-ipv6", o.external6, "--second-region-cidr", o.second,
		"--zones", strings.Join(o.zones, ","), "--prefix", o.prefix)
	child.Stdout, child.Stderr = log, log
	child.Dir = "/"
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives this terminal
	if err := child.Start(); err != nil {
		return fmt.Errorf("start the cloud: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	limit, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ended:
			return fmt.Errorf("the cloud ended at its start:\n%s", tail(config, begin))
		case <-limit.Done():
			// Interrupted or too slow: it is not left behind half started.
			_ = child.Process.Signal(syscall.SIGTERM)
			<-ended
			return errors.Join(fmt.Errorf("the cloud did not answer at %s; its log is %s", config.Endpoint(), logPath(config)), ctx.Err())
		case <-look.C:
			if answers(limit, config) {
				return nil
			}
		}
	}
}

// openLog opens the log for appending; the offset is where this start's lines begin.
func openLog(config localcloud.Config) (log *os.File, begin int64, err error) {
	// The folder is made by the cloud itself, which notes that it did.
	if err := localcloud.PrepareState(config); err != nil {
		return nil, 0, err
	}
	log, err = os.OpenFile(logPath(config), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open the log: %w", err)
	}
	about, err := log.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, log.Close())
	}
	return log, about.Size(), nil
}

// tail is the log from an offset, at most its last 4 KiB.
func tail(config localcloud.Config, begin int64) string {
	data, err := os.ReadFile(logPath(config))
	if err != nil || int64(len(data)) <= begin {
		return "its log is " + logPath(config)
	}
	data = data[begin:]
	return strings.TrimSpace(string(data[max(0, len(data)-4096):]))
}

// answers is true when Keystone serves its version document.
func answers(ctx context.Context, config localcloud.Config) bool {
	bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(bounded, http.MethodGet, config.Endpoint()+"/identity/v3", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	return err == nil && response.StatusCode == http.StatusOK && strings.Contains(string(body), `"v3`)
}

func explain(out io.Writer, config localcloud.Config, clouds string) {
	fmt.Fprintf(out, `
  APIs         %s/identity/v3 (Keystone), and what its catalog names
  clouds.yaml  %s
               clouds: burano-admin, burano-demo, burano-other, burano-service
  log          %s

Try, with OpenStack's client:
  export OS_CLIENT_CONFIG_FILE=%s OS_CLOUD=burano-demo
  openstack token issue
  openstack network list

Take it down, with everything it made:
  localcloud down --state %s
`, config.Endpoint(), clouds, logPath(config), clouds, config.StateDir)
}
