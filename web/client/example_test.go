package client_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/burano/burano/web/client"
)

// Deploy a file, print the reports, and write the kubeconfig of its cluster.
func Example() {
	ctx := context.Background()
	api, err := client.Connect(ctx, "burano-demo", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	file, err := client.ReadEnvironmentFile("demo.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	id, err := api.Files().Deploy(ctx, file)
	if err != nil {
		fmt.Println(err)
		return
	}
	deployment, err := api.Deployments().Newest(ctx, id)
	if err != nil {
		fmt.Println(err)
		return
	}
	state, err := api.Deployments().Follow(ctx, deployment.ID, func(event client.Event) error {
		if event.Report != nil {
			fmt.Println(event.Report.Level, event.Report.Text)
		}
		return nil
	})
	if err != nil || !client.Succeeded(state) {
		fmt.Println(state, err)
		return
	}
	environment, err := api.Environments().Get(ctx, id)
	if err != nil {
		fmt.Println(err)
		return
	}
	cluster, err := environment.ClusterID("") // the only one
	if err != nil {
		fmt.Println(err)
		return
	}
	kubeconfig, err := api.Clusters().Kubeconfig(ctx, id, cluster, client.KubeconfigOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := os.WriteFile("demo.kubeconfig", kubeconfig, 0o600); err != nil {
		fmt.Println(err)
	}
}

// Upload the packages of a folder; existing ones stay as they are.
func ExamplePackages_Upload() {
	ctx := context.Background()
	api, err := client.Connect(ctx, "burano-demo", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	paths, err := filepath.Glob("packages/*.zip")
	if err != nil {
		fmt.Println(err)
		return
	}
	finder := client.NewFinder("")
	asked, err := finder.FindAll(ctx, paths)
	if err != nil {
		fmt.Println(err)
		return
	}
	ordered, err := finder.WithRequired(ctx, asked, api.Packages().Has)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, one := range ordered {
		if err := api.Packages().Upload(ctx, one.Name(), one.Zip, client.UploadOptions{}); err != nil && !client.IsStatus(err, http.StatusConflict) {
			fmt.Println(err)
		}
	}
}
