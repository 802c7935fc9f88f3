package database

import (
	"errors"

	"gorm.io/gorm"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/internal/turns"
)

// takeTurns has the statements of requests that read outside of a transaction wait for their project's turn, until their rows are decoded: so many
// connections serve them, and one project has at most half of these. Other work takes the connections that are left.
func takeTurns(db *gorm.DB, connections int) error {
	const place = "burano:turn"
	places := turns.New(connections, (connections+1)/2)
	before := func(tx *gorm.DB) {
		owner := identity.From(tx.Statement.Context).ProjectID
		if _, within := tx.Statement.ConnPool.(gorm.TxCommitter); within || owner == "" || tx.DryRun || tx.Error != nil {
			return
		}
		leave, err := places.Enter(tx.Statement.Context, owner)
		if err != nil {
			_ = tx.AddError(err) // it is the statement's
			return
		}
		tx.InstanceSet(place, leave)
	}
	after := func(tx *gorm.DB) {
		if leave, waited := tx.InstanceGet(place); waited {
			leave.(func())()
		}
	}
	callbacks := db.Callback()
	return errors.Join(
		callbacks.Query().Before("*").Register(place, before), callbacks.Query().After("*").Register(place+" ended", after),
		callbacks.Row().Before("*").Register(place, before), callbacks.Row().After("*").Register(place+" ended", after),
	)
}
