console.log("hello " + process.argv[2]);
