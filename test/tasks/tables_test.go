//go:build unix

package tasks_test

// effect is one row of the ground truth: an attempt has had its effect. The table
// has no unique constraint, so that a second effect is a second row.
type effect struct {
	key     string
	attempt uint32
	owner   uint64
	process string
}

const (
	insertEffect = `insert into effects (task, attempt, owner, process) values ($1, $2, $3, $4)`
	insertMark   = `insert into marks (id, process, kind, times) values ($1, $2, $3, $4)`
	insertAnswer = `insert into told (task, result) values ($1, $2)`

	columns = `task, operation, from_state, from_attempt, from_owner, to_state, to_attempt, to_owner, early`
)

// The database itself writes the table history, in the transaction of each change
// of a record's token, so that it is complete. The column early says that the
// record's lease or delay had not expired.
//
// The table marks has the events that processes report, a few times a second, so
// that a killed process has written most of them. A mark whose write had no reply is
// written again, with the same ID. The table told has the answers to
// direct callers.
func postgresTables() []string {
	return []string{
		`create table effects (n bigserial, task text not null, attempt bigint not null, owner bigint not null, process text not null)`,
		`create table marks (id text not null, process text not null, kind text not null, times bigint not null)`,
		`create table told (task text not null, result text not null)`,
		`create table history (n bigserial, task text not null, operation text not null,
			from_state int not null, from_attempt bigint not null, from_owner bigint not null,
			to_state int not null, to_attempt bigint not null, to_owner bigint not null, early boolean not null)`,
		`create function remember() returns trigger language plpgsql as $$ begin
			if tg_op = 'INSERT' then
				insert into history (` + columns + `)
				values (convert_from(new.key, 'UTF8'), convert_from(new.operation, 'UTF8'), 0, 0, 0, new.state, new.attempt, new.owner, false);
			elsif tg_op = 'DELETE' then
				insert into history (` + columns + `)
				values (convert_from(old.key, 'UTF8'), convert_from(old.operation, 'UTF8'), old.state, old.attempt, old.owner, 0, 0, 0, false);
			else
				insert into history (` + columns + `)
				values (convert_from(new.key, 'UTF8'), convert_from(new.operation, 'UTF8'), old.state, old.attempt, old.owner,
					new.state, new.attempt, new.owner, coalesce(old.due > clock_timestamp(), false));
			end if;
			return null;
		end $$`,
		`create trigger remember_rows after insert or delete on semel_records for each row execute function remember()`,
		`create trigger remember_tokens after update on semel_records for each row
			when ((old.state, old.attempt, old.owner) is distinct from (new.state, new.attempt, new.owner)) execute function remember()`,
	}
}

func sqliteTables() []string {
	return []string{
		`CREATE TABLE effects (n INTEGER PRIMARY KEY, task TEXT NOT NULL, attempt INTEGER NOT NULL, owner INTEGER NOT NULL, process TEXT NOT NULL)`,
		`CREATE TABLE marks (id TEXT NOT NULL, process TEXT NOT NULL, kind TEXT NOT NULL, times INTEGER NOT NULL)`,
		`CREATE TABLE told (task TEXT NOT NULL, result TEXT NOT NULL)`,
		`CREATE TABLE history (n INTEGER PRIMARY KEY, task TEXT NOT NULL, operation TEXT NOT NULL,
			from_state INTEGER NOT NULL, from_attempt INTEGER NOT NULL, from_owner INTEGER NOT NULL,
			to_state INTEGER NOT NULL, to_attempt INTEGER NOT NULL, to_owner INTEGER NOT NULL, early INTEGER NOT NULL)`,
		`CREATE TRIGGER remember_insert AFTER INSERT ON semel_records BEGIN
			INSERT INTO history (` + columns + `) VALUES (CAST(new.key AS TEXT), CAST(new.operation AS TEXT), 0, 0, 0, new.state, new.attempt, new.owner, 0);
		END`,
		`CREATE TRIGGER remember_delete AFTER DELETE ON semel_records BEGIN
			INSERT INTO history (` + columns + `) VALUES (CAST(old.key AS TEXT), CAST(old.operation AS TEXT), old.state, old.attempt, old.owner, 0, 0, 0, 0);
		END`,
		`CREATE TRIGGER remember_tokens AFTER UPDATE ON semel_records
			WHEN old.state <> new.state OR old.attempt <> new.attempt OR old.owner <> new.owner BEGIN
			INSERT INTO history (` + columns + `) VALUES (CAST(new.key AS TEXT), CAST(new.operation AS TEXT), old.state, old.attempt, old.owner,
				new.state, new.attempt, new.owner, coalesce(old.due, 0) > CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000);
		END`,
	}
}

// An owner is stored as the same 64 bits with a sign, as the insert of an effect does.
func mariadbTables() []string {
	const insert = `INSERT INTO history (` + columns + `) SELECT `
	name := func(row string) string {
		return `CONVERT(` + row + `.k USING utf8mb4), CONVERT(` + row + `.operation USING utf8mb4), `
	}
	token := func(row string) string {
		return row + `.state, ` + row + `.attempt, CAST(` + row + `.owner AS SIGNED), `
	}
	return []string{
		`CREATE TABLE effects (n BIGINT AUTO_INCREMENT PRIMARY KEY, task VARCHAR(255) NOT NULL, attempt BIGINT NOT NULL, owner BIGINT NOT NULL,
			process VARCHAR(255) NOT NULL)`,
		`CREATE TABLE marks (id VARCHAR(255) NOT NULL, process VARCHAR(255) NOT NULL, kind VARCHAR(255) NOT NULL, times BIGINT NOT NULL)`,
		`CREATE TABLE told (task VARCHAR(255) NOT NULL, result VARCHAR(255) NOT NULL)`,
		`CREATE TABLE history (n BIGINT AUTO_INCREMENT PRIMARY KEY, task VARCHAR(255) NOT NULL, operation VARCHAR(255) NOT NULL,
			from_state INT NOT NULL, from_attempt BIGINT NOT NULL, from_owner BIGINT NOT NULL,
			to_state INT NOT NULL, to_attempt BIGINT NOT NULL, to_owner BIGINT NOT NULL, early BOOLEAN NOT NULL)`,
		`CREATE TRIGGER remember_insert AFTER INSERT ON semel_records FOR EACH ROW ` + insert + name("new") + `0, 0, 0, ` + token("new") + `false`,
		`CREATE TRIGGER remember_delete AFTER DELETE ON semel_records FOR EACH ROW ` + insert + name("old") + token("old") + `0, 0, 0, false`,
		`CREATE TRIGGER remember_tokens AFTER UPDATE ON semel_records FOR EACH ROW ` + insert + name("new") + token("old") + token("new") +
			`coalesce(old.due > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), false)
			FROM DUAL WHERE (old.state, old.attempt, old.owner) <> (new.state, new.attempt, new.owner)`,
	}
}
