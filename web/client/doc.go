// Package client is the Go client of Burano's API: environments, their drafts (sessions), deployments and their reports as they happen, actions, packages,
// categories, templates and Kubernetes clusters. The command line uses it.
//
// Connect signs in to Keystone with an entry of clouds.yaml or the variables OS_*, as OpenStack's own clients do, and finds the server:
//
//	api, err := client.Connect(ctx, "mycloud", "")
//	id, err := api.Files().Deploy(ctx, file)
//	newest, err := api.Deployments().Newest(ctx, id)
//	state, err := api.Deployments().Follow(ctx, newest.ID, func(event client.Event) error { ... })
//
// New makes a client with any other source of tokens. An answer of the server with a status of 400 or more is a *Refusal; IsStatus checks for one. Use
// Call for requests without a method here. Finder finds packages and bundles in files, at URLs and in repositories before they are uploaded. Objects are
// named by their ids, unless a method's comment differs.
package client
