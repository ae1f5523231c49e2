from redrive.cli.main import main

main()
