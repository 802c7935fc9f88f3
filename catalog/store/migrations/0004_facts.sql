-- +goose Up
-- What is in a package's files that lists tell; NULL where nobody has looked yet: in packages of former versions.
ALTER TABLE packages ADD COLUMN has_ui BOOLEAN;
ALTER TABLE packages ADD COLUMN has_logo BOOLEAN;
ALTER TABLE packages ADD COLUMN has_supplier_logo BOOLEAN;
-- The full names of a class's parents, divided by spaces; as long as has_ui is NULL they are not known.
ALTER TABLE package_classes ADD COLUMN parents TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE package_classes DROP COLUMN parents;
ALTER TABLE packages DROP COLUMN has_supplier_logo;
ALTER TABLE packages DROP COLUMN has_logo;
ALTER TABLE packages DROP COLUMN has_ui;
