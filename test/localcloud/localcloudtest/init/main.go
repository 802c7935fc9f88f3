// Command init is the first process of the smallest possible server: it takes its addresses from the config drive and prints its name, also to clients at
// port 8080 or 8081. To clients at port 8082 it returns the metadata service's answer, and it waits for the halt.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
)

func main() {
	halted := make(chan os.Signal, 1)
	signal.Notify(halted, syscall.Signal(34+3), syscall.SIGTERM) // SIGRTMIN+3, as systemd takes it
	if err := configure("/run/config-drive/openstack/latest/network_data.json"); err != nil {
		fmt.Println("no network:", err)
	}
	name, _ := os.Hostname()
	drive, _ := os.ReadFile("/run/config-drive/openstack/latest/user_data")
	greeting := fmt.Sprintf("server %s is up: %s\n", name, drive)
	fmt.Print(greeting)
	greet := func(w io.Writer) { _, _ = io.WriteString(w, greeting) }
	for address, say := range map[string]func(io.Writer){":8080": greet, ":8081": greet, ":8082": metadata} {
		if listener, err := net.Listen("tcp", address); err == nil {
			go serve(listener, say)
		}
	}
	<-halted
}

// serve calls the function for every client.
func serve(listener net.Listener, say func(io.Writer)) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		say(connection)
		_ = connection.Close()
	}
}

// metadata repeats the metadata service's answer.
func metadata(w io.Writer) {
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get("http://169.254.169.254/openstack/latest/meta_data.json")
	if err != nil {
		_, _ = fmt.Fprintln(w, err)
		return
	}
	_, _ = io.Copy(w, response.Body)
	_ = response.Body.Close()
}

func configure(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var wanted struct {
		Links []struct {
			ID  string `json:"id"`
			MAC string `json:"ethernet_mac_address"`
			MTU int    `json:"mtu"`
		} `json:"links"`
		Networks []struct {
			Link    string `json:"link"`
			Address string `json:"ip_address"`
			Netmask string `json:"netmask"`
			Routes  []struct {
				Gateway string `json:"gateway"`
			} `json:"routes"`
		} `json:"networks"`
	}
	if err := json.Unmarshal(data, &wanted); err != nil {
		return err
	}
	links, err := netlink.LinkList()
	if err != nil {
		return err
	}
	for _, described := range wanted.Links {
		for _, link := range links {
			if link.Attrs().HardwareAddr.String() != described.MAC {
				continue
			}
			if err := netlink.LinkSetMTU(link, described.MTU); err != nil {
				return err
			}
			if err := netlink.LinkSetUp(link); err != nil {
				return err
			}
			for _, network := range wanted.Networks {
				if network.Link != described.ID {
					continue
				}
				ip := net.ParseIP(network.Address)
				mask := net.IPMask(net.ParseIP(network.Netmask).To16())
				if ip.To4() != nil {
					mask = mask[len(mask)-net.IPv4len:]
				}
				address := &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: mask}}
				if err := netlink.AddrReplace(link, address); err != nil {
					return err
				}
				for _, route := range network.Routes {
					err := netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.ParseIP(route.Gateway)})
					if err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}
