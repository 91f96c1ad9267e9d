// Prints the SQL that checks a submission, for the next migration. Run it after a build, when the schema has changed.
const { submissionCheckSql } = await import('../dist/store/submission-check-sql.js');
process.stdout.write(submissionCheckSql());
