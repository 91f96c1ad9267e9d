-- oldest-program: 0.1.0
--
-- Reserved: replaced when the branches of issue 15 are joined.

SELECT 1;
